"""A made-up Kafka: logs of records, and one consumer group."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ettwatch_faust.sender import Out
from ettwatch_faust.shelf import Write
from ettwatch_faust.topics import names

NAMES: Final = names("ett")


class Record(NamedTuple):
    """A record as the consumer gives it; the time is in milliseconds."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class Kafka:
    """The brokers: logs, and one consumer group."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.events: list[list[Record]] = [[] for _ in range(partitions)]
        self.ends = [0] * partitions
        self.logs: dict[tuple[str, int], list[Out]] = {}
        self.committed: dict[int, int] = {}
        self.generation = 0
        self.owners: dict[int, Any] = {}

    def produce(self, partition: int, key: bytes, value: bytes, now_us: int, *, skip: int = 0) -> None:
        """Append to the events; `skip` offsets before it hold nothing, as the end of a transaction does."""
        offset = self.ends[partition] + skip
        self.events[partition].append(Record(NAMES.events, partition, offset, key, value, now_us // 1000))
        self.ends[partition] = offset + 1

    def append(self, out: Out) -> int:
        """Append what a worker sends; return the offset."""
        log = self.logs.setdefault((out.topic, out.partition), [])
        log.append(out)
        return len(log) - 1

    def log(self, topic: str, partition: int) -> list[Out]:
        """What a partition of a topic holds."""
        return self.logs.get((topic, partition), [])

    def state(self, partition: int) -> dict[bytes, bytes]:
        """The changelog of the state, compacted."""
        part: dict[bytes, bytes] = {}
        apply_writes(part, ((out.key or b"", out.value) for out in self.log(NAMES.state, partition)))
        return part


def apply_writes(part: dict[bytes, bytes], writes: Iterable[Write]) -> None:
    """Bring a partition of the table up to date."""
    for key, value in writes:
        if value is None:
            part.pop(key, None)
        else:
            part[key] = value
