"""Kafka brokers in containers, where an engine answers on this Linux machine.

They use the machine's own network, so that one broker or three need no addresses but those of the native kind, and
keep them when they start again.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from support.kafka_jars import KafkaUnavailable, version

_PROBE_S: Final = 3
_STOP_S: Final = 40
_DATA: Final = "/tmp/kafka-data"
_RUN: Final = (
    "/opt/kafka/bin/kafka-storage.sh format --ignore-formatted -t {cluster} -c /settings"
    " && exec /opt/kafka/bin/kafka-server-start.sh /settings"
)


@cache
def docker_answers() -> bool:
    """Whether containers on this machine's network can be had. Asks once, for some seconds at most."""
    if sys.platform != "linux" or Path("/.dockerenv").exists():
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


class DockerNode:
    """One broker in a container; its data stays in the container while that exists."""

    def __init__(self, folder: Path, i: int, cluster: str, settings: dict[str, str]) -> None:
        self._settings = folder / f"server-{i}.properties"
        self._settings.write_text(
            "".join(f"{name}={value}\n" for name, value in (settings | {"log.dirs": _DATA}).items())
        )
        self._settings.chmod(0o644)
        folder.chmod(0o755)
        self._cluster = cluster
        self._container: Any = None
        self._wrapped: Any = None

    def start(self) -> None:
        """Make the container, or start it again. Raises KafkaUnavailable."""
        from docker.errors import DockerException
        from testcontainers.core.container import DockerContainer

        try:
            if self._wrapped is not None:
                self._wrapped.start()
                return
            self._container = (
                DockerContainer(f"apache/kafka:{version()}", user="root", network_mode="host", entrypoint="sh")
                .with_env("KAFKA_HEAP_OPTS", "-Xms64m -Xmx256m")
                .with_volume_mapping(str(self._settings), "/settings", "ro")
                .with_command(["-c", _RUN.format(cluster=self._cluster)])
            )
            self._container.start()
            self._wrapped = self._container.get_wrapped_container()
        except (DockerException, OSError) as error:
            raise KafkaUnavailable(f"the container engine does not start apache/kafka:{version()}: {error}") from None

    def kill(self) -> None:
        if self._wrapped is not None and self.death() is None:
            self._wrapped.kill()
            self._wrapped.wait()

    def stop(self) -> None:
        if self._wrapped is not None:
            self._wrapped.stop(timeout=_STOP_S)

    def close(self) -> None:
        if self._container is not None:
            self._container.stop()
            self._container = self._wrapped = None

    def death(self) -> str | None:
        if self._wrapped is None:
            return "it was not started"
        self._wrapped.reload()
        if self._wrapped.status == "running":
            return None
        end = self._wrapped.logs(tail=25).decode(errors="replace")
        taken = "a port is in use; " if "already in use" in end else ""
        return f"the container is {self._wrapped.status}; {taken}its log ends with:\n{end}"
