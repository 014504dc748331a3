"""The two kinds of store. Each test finds the tables empty; the embedded engine is closed after each module, so that
others may open another folder."""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from ettwatch_clickhouse import EmbeddedStore, Store, connect, migrate, open_embedded
from support.clickhouse import empty, front_process


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    store = open_embedded(tmp_path_factory.mktemp("engine") / "clickhouse")
    try:
        migrate(store)
        yield store
    finally:
        store.close()


@pytest.fixture
def embedded(engine: EmbeddedStore) -> EmbeddedStore:
    empty(engine)
    return engine


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server: the one of ETTWATCH_TEST_CLICKHOUSE_URL, else one in Docker, else the front in another process."""
    told = os.environ.get("ETTWATCH_TEST_CLICKHOUSE_URL")
    if told:
        yield told
    elif _docker():
        from testcontainers.community.clickhouse import ClickHouseContainer

        with ClickHouseContainer("clickhouse/clickhouse-server:25.8") as server:
            host, port = server.get_container_host_ip(), server.get_exposed_port(8123)
            yield f"http://{server.username}:{server.password}@{host}:{port}/ettwatch_test"
    else:
        with front_process(tmp_path_factory.mktemp("server") / "clickhouse") as url:
            yield f"{url}/ettwatch_test"


def _docker() -> bool:
    if "DOCKER_HOST" not in os.environ and not Path("/var/run/docker.sock").exists():
        return False
    docker = import_module("docker")  # it has no types
    try:
        docker.from_env(timeout=2).ping()
    except docker.errors.DockerException:
        return False
    return True


@pytest.fixture(scope="module")
def connected(server_url: str) -> Iterator[Store]:
    store = connect(server_url)
    try:
        migrate(store)
        yield store
    finally:
        store.close()


@pytest.fixture
def server(connected: Store) -> Store:
    empty(connected)
    return connected


@pytest.fixture(params=["embedded", "server"])
def store(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(request.param)
    return found
