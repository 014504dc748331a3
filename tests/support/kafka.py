"""Apache Kafka for tests: brokers of one's own on the loopback, to be killed and started again at will.

    with Cluster(brokers=3) as cluster:
        cluster.bootstrap      # "127.0.0.1:…,127.0.0.1:…,127.0.0.1:…"
        cluster.kill(1)        # as kill -9
        cluster.start(1)       # with the data it had

They run in containers, where an engine answers, else from Kafka's own jars on this machine's Java. All their processes
end with the test run, however that ends. Tests that only need some broker first ask `given()`.
"""

import atexit
import contextlib
import os
import shutil
import socket
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol, Self

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from support.kafka_docker import DockerNode, docker_answers
from support.kafka_jars import KafkaUnavailable
from support.kafka_native import NativeNode, Reaper, format_storage
from support.ports import free_port

__all__ = ["PASSWORD", "USER", "Cluster", "KafkaUnavailable", "given"]

USER: Final = "ettwatch"
PASSWORD: Final = "let-me-in"
"""With these, and SASL_PLAINTEXT and PLAIN, one gets in at `Cluster.guarded`."""

_READY_S: Final = 120
_TRIES: Final = 3
_QUIET: Final[Mapping[str, str]] = {
    "auto.create.topics.enable": "false",
    "background.threads": "2",
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "5000",  # a killed broker is let in again after that
    "group.initial.rebalance.delay.ms": "0",
    "initial.broker.registration.timeout.ms": "120000",
    "log.cleaner.dedupe.buffer.size": "4194304",  # the default is half of the heap
    "num.io.threads": "4",
    "num.network.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}


class _Node(Protocol):
    def start(self) -> None: ...
    def kill(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def death(self) -> str | None:
        """Why it is not running, None if it is."""


class Cluster:
    """One or three brokers, each of them a controller too.

    Attributes:
        bootstrap: Addresses of all brokers, open to all.
        guarded: Addresses of all brokers, for USER with PASSWORD only.
        replication: How many copies of a topic it can hold.
    """

    def __init__(self, brokers: int = 1, properties: Mapping[str, str] | None = None) -> None:
        """Start them, and wait until each serves. Raises KafkaUnavailable where that cannot be."""
        self.replication = brokers
        self._folder = Path(tempfile.mkdtemp(prefix="ettwatch-kafka-"))
        self._reaper = Reaper(self._folder)
        self._nodes: list[_Node] = []
        atexit.register(self.close)
        try:
            self._make_somehow(brokers, properties or {})
        except BaseException:
            self.close()
            raise

    def _make_somehow(self, brokers: int, properties: Mapping[str, str]) -> None:
        refused = []
        for docker in [True, False] if docker_answers() else [False]:
            for left in reversed(range(_TRIES)):
                try:
                    return self._make(brokers, properties, docker)
                except KafkaUnavailable as error:
                    self._close_nodes()
                    # Someone else may have taken a port since it was found free.
                    if not left or "in use" not in str(error):
                        refused.append(str(error))
                        break
        raise KafkaUnavailable("; ".join(refused))

    def _make(self, brokers: int, properties: Mapping[str, str], docker: bool) -> None:
        ports = [free_port() for _ in range(3 * brokers)]
        self._open, guarded, control = ports[:brokers], ports[brokers : 2 * brokers], ports[2 * brokers :]
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self._open)
        self.guarded = ",".join(f"127.0.0.1:{port}" for port in guarded)
        # Kafka's own tool takes an id that begins with a dash for an option.
        cluster = "E" + urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()[1:]
        settings = [
            _properties(i, (self._open[i], guarded[i]), control, self._folder) | dict(properties)
            for i in range(brokers)
        ]
        if docker:
            self._nodes = [DockerNode(self._folder, i, cluster, each) for i, each in enumerate(settings)]
        else:
            format_storage(self._folder, cluster, settings)
            self._nodes = [NativeNode(self._folder, i, self._reaper) for i in range(brokers)]
        for node in self._nodes:
            node.start()
        for i in range(brokers):
            self._wait(i)

    def start(self, i: int) -> None:
        """Start a broker that was stopped or killed, with the data it had, and wait until it serves."""
        self._nodes[i].start()
        self._wait(i)

    def stop(self, i: int) -> None:
        """End a broker in good order: it hands over what it leads, and closes its files."""
        self._nodes[i].stop()

    def kill(self, i: int) -> None:
        """End a broker at once, as `kill -9` does."""
        self._nodes[i].kill()

    def mend(self) -> None:
        """Start the brokers again that do not run, with the data they had."""
        for i, node in enumerate(self._nodes):
            if node.death() is not None:
                self.start(i)

    def close(self) -> None:
        """End all brokers at once and remove their data; may be called again."""
        atexit.unregister(self.close)
        self._close_nodes()
        self._reaper.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _close_nodes(self) -> None:
        while self._nodes:
            self._nodes.pop().close()

    def _wait(self, i: int) -> None:
        """Wait until broker `i` answers by itself and says that it is one of the cluster's."""
        end = time.monotonic() + _READY_S
        while True:
            if (why := self._nodes[i].death()) is not None:
                raise KafkaUnavailable(f"broker {i} ended while it started: {why}")
            with contextlib.suppress(KafkaError, OSError):
                socket.create_connection(("127.0.0.1", self._open[i]), timeout=1).close()
                if i in _members(self._open[i]):
                    return
            if time.monotonic() > end:
                raise KafkaUnavailable(f"broker {i} did not serve within {_READY_S} s")
            time.sleep(0.1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def given() -> str | None:
    """The addresses in ETTWATCH_TEST_KAFKA, of brokers that someone else runs: for tests that only need some Kafka."""
    return os.environ.get("ETTWATCH_TEST_KAFKA") or None


def _members(port: int) -> set[int]:
    """The brokers that one broker knows to be alive."""
    admin = KafkaAdminClient(
        bootstrap_servers=f"127.0.0.1:{port}", bootstrap_timeout_ms=5_000, request_timeout_ms=5_000
    )
    try:
        brokers = admin.describe_cluster()["brokers"]
    finally:
        admin.close()
    return {broker["broker_id"] for broker in brokers if not broker.get("is_fenced")}


def _properties(i: int, ports: tuple[int, int], control: list[int], folder: Path) -> dict[str, str]:
    """The settings of broker `i`, quiet and small."""
    copies = str(len(control))
    listeners = f"OPEN://127.0.0.1:{ports[0]},GUARDED://127.0.0.1:{ports[1]}"
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    return {
        **_QUIET,
        "process.roles": "broker,controller",
        "node.id": str(i),
        "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{port}" for n, port in enumerate(control)),
        "controller.listener.names": "CONTROL",
        "inter.broker.listener.name": "OPEN",
        "listeners": f"{listeners},CONTROL://127.0.0.1:{control[i]}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "OPEN:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROL:PLAINTEXT",
        "listener.name.guarded.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": login,
        "log.dirs": str(folder / f"data-{i}"),
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": "2" if len(control) > 2 else "1",
    }
