"""A ClickHouse server for tests: the one at an address, else one in a container, else the embedded engine over HTTP.

Use `serving(folder)` in a fixture of your own, or take `clickhouse_server` over:

    from support.clickhouse_server import clickhouse_server as clickhouse_server
"""

import contextlib
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

import pytest

from support.clickhouse import front_process

VARIABLE: Final = "ETTWATCH_TEST_CLICKHOUSE"
"""Address of a server, http[s]://user:password@host:port, on which tests may create and drop databases."""

IMAGE: Final = "clickhouse/clickhouse-server:25.8"
_PROBE_S: Final = 3


@dataclass(frozen=True, slots=True)
class ServerForTests:
    """A running ClickHouse.

    Attributes:
        url: Its address, with user and password, without a database.
        kind: What it is: `address` and `docker` are real servers, `front` the embedded engine over HTTP.
    """

    url: str
    kind: Literal["address", "docker", "front"]

    @property
    def real(self) -> bool:
        """Whether it is a ClickHouse server, with users and rights."""
        return self.kind != "front"

    def database(self, name: str | None = None) -> str:
        """The address of a database that is not there yet; each call without a name gives another one."""
        return f"{self.url}/{name or f'test_{uuid.uuid4().hex}'}"


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[ServerForTests]:
    """A server for as long as the block lasts; the folder is where the embedded engine keeps its data."""
    told = os.environ.get(VARIABLE)
    if told:
        yield ServerForTests(told.rstrip("/"), "address")
    elif docker_answers():
        from testcontainers.community.clickhouse import ClickHouseContainer

        with ClickHouseContainer(IMAGE) as server:
            host, port = server.get_container_host_ip(), server.get_exposed_port(8123)
            login = f"{quote(server.username)}:{quote(server.password)}"
            yield ServerForTests(f"http://{login}@{host}:{port}", "docker")
    else:
        with front_process(folder / "clickhouse") as url:
            yield ServerForTests(url, "front")


@pytest.fixture(scope="session")
def clickhouse_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerForTests]:
    """One server for all tests of a run; each takes a database of its own."""
    with serving(tmp_path_factory.mktemp("clickhouse-server")) as server:
        yield server


@cache
def docker_answers() -> bool:
    """Whether containers can be had. Asks once, for some seconds at most."""
    if "DOCKER_HOST" not in os.environ and not Path("/var/run/docker.sock").exists():
        return False
    try:
        import docker
        from docker.errors import DockerException
    except ModuleNotFoundError:
        return False
    try:
        client = docker.from_env(timeout=_PROBE_S)
    except DockerException:
        return False
    try:
        return bool(client.ping())
    except (DockerException, OSError):
        return False
    finally:
        client.close()
