"""A batch: what some records tell, and which records these were. No I/O."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from ettwatch_app.sink.content import Bad, Content
from ettwatch_clickhouse.updates import UpdateBatch
from ettwatch_schemas import DeadLetter


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Record(NamedTuple):
    """A record as it was read.

    Attributes:
        place: Where.
        offset: Its number there.
        time_ms: The time that it bears (ms since the Unix epoch).
        key: Its key.
        value: Its value.
    """

    place: Place
    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None


@dataclass(slots=True)
class _Stretch:
    """The records of one partition: from which to before which offset, and a digest of them."""

    first: int
    next: int
    digest: Any


class Batch:
    """What waits to be written together.

    Attributes:
        updates: What the records tell.
        letters: What could not be read.
        bytes: Of all values.
        born: When the first record came, by the clock of who fills it; None while it is empty.
        newest_ms: The newest time that a record bears.
    """

    def __init__(self) -> None:
        self.updates = UpdateBatch()
        self.letters: list[DeadLetter] = []
        self.bytes = 0
        self.born: float | None = None
        self.newest_ms = 0
        self._stretches: dict[Place, _Stretch] = {}

    def add(self, record: Record, content: Content, now: float) -> None:
        """Take in a record of which the content is known; those of one partition in their order."""
        stretch = self._stretches.get(record.place)
        if stretch is None:
            stretch = self._stretches[record.place] = _Stretch(record.offset, 0, blake2b(digest_size=16))
        stretch.next = record.offset + 1
        value = record.value or b""
        stretch.digest.update(b"%d,%d," % (record.offset, len(value)))
        stretch.digest.update(value)
        self.bytes += len(value)
        self.newest_ms = max(self.newest_ms, record.time_ms)
        if self.born is None:
            self.born = now
        if content.update is not None:
            self.updates.update(content.update)
        if content.window is not None:
            self.updates.window(content.window)
        if content.events:
            self.updates.events(content.events)
        self.letters += [_letter(record, bad, int(now * 1e6)) for bad in content.bad]

    @property
    def rows(self) -> int:
        """How many rows it has, about."""
        return self.updates.rows

    def offsets(self) -> dict[Place, int]:
        """Return where to go on in each partition, once all of it is safe."""
        return {place: stretch.next for place, stretch in self._stretches.items()}

    def token(self, table: str) -> str:
        """Return what an insert is known by: the same for the same records, and for no others.

        Offsets alone would not do: a topic that was made anew begins at 0 once more.
        """
        whole = blake2b(digest_size=16)
        for place, stretch in sorted(self._stretches.items()):
            whole.update(f"{place.topic}/{place.partition}:{stretch.first}-{stretch.next},".encode())
            whole.update(stretch.digest.digest())
        return f"{table}-{whole.hexdigest()}"


def _letter(record: Record, bad: Bad, time_us: int) -> DeadLetter:
    return DeadLetter(
        value=record.value,
        key=record.key,
        code=bad.code,
        reason=bad.reason,
        field=None,
        fix="the worker that wrote it and this sink may be of different versions: use the newer one for both",
        topic=record.place.topic,
        partition=record.place.partition,
        offset=record.offset,
        index=bad.line,
        time=time_us,
        job=None,
        handled=None,
    )
