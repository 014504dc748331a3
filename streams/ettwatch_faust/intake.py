"""What a record of the events topic holds: its events, and a dead letter for each thing that is wrong with it. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from aiokafka.partitioner import murmur2

from ettwatch_faust.unpack import MOST_BYTES, Unread
from ettwatch_schemas import DeadLetter, DecodeError, Event, decode_message
from ettwatch_schemas.scan import split_array

__all__ = ["AHEAD_US", "Origin", "Taken", "accepted_lines", "few", "is_home", "late_letter", "misplaced", "read"]

AHEAD_US: Final = 600_000_000
"""An event this far ahead of the worker's clock is refused (µs)."""

_MOST_BYTES: Final = 4 << 20
"""Bytes of the dead letters of one record at most, where that is possible."""

_ONE_LINE: Final = bytes.maketrans(b"\n\r", b"  ")

_LATE: Final = {
    "late": (
        "it is further behind the newest event of its job than the lateness, or would change what is settled",
        "deliver events sooner, or raise --lateness of the workers; `ettwatch replay` has no such limit",
    ),
    "expired": (
        "its job was closed long ago and is no longer kept",
        "give a new run a new job name; `ettwatch replay` takes old events",
    ),
}


class Origin(NamedTuple):
    """Where a record was read, and when."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    now_us: int


class Taken(NamedTuple):
    """A record, decoded.

    Attributes:
        job: Its job; None if it has no good event.
        events: The good ones, in their order; `indexes` are their places in the array, None for one by itself.
        letters: What was refused.
    """

    job: str | None
    events: Sequence[Event]
    indexes: Sequence[int | None]
    letters: list[DeadLetter]


def read(origin: Origin) -> Taken:
    """Decode a record. Never raises: what is wrong becomes a dead letter."""
    if origin.value is None:
        why = "the record has no value", "send the event as the value, the job as the key"
        return Taken(None, (), (), [_letter(origin, "no_value", *why)])
    if isinstance(origin.value, Unread):
        return Taken(None, (), (), [_unread(origin, origin.value.records)])
    decoded = decode_message(origin.value)
    letters = [_refused(origin, error) for error in decoded.errors]
    events = decoded.events
    indexes: Sequence[int | None] = (None,)
    if len(events) != 1 or origin.value.lstrip()[:1] == b"[":
        bad = {error.index for error in decoded.errors}
        indexes = [i for i in range(len(events) + len(bad)) if i not in bad]
    if not events:
        return Taken(None, (), (), letters)
    job = events[0].job
    if origin.key != job.encode():
        told = "none" if origin.key is None else repr(origin.key[:100])
        why = f"key: {told} is not the job {job[:100]!r}", "send each event with its job, UTF-8, as the key"
        letters += [_letter(origin, "wrong_key", *why, index=i, field="key", job=job) for i in indexes]
        return Taken(None, (), (), letters)
    limit = origin.now_us + AHEAD_US
    if any(event.ts > limit for event in events):
        late = [(e, i) for e, i in zip(events, indexes, strict=True) if e.ts > limit]
        letters += [_ahead(origin, event, i) for event, i in late]
        kept = [(e, i) for e, i in zip(events, indexes, strict=True) if e.ts <= limit]
        events, indexes = [e for e, _ in kept], [i for _, i in kept]
    return Taken(job if events else None, events, indexes, letters)


def is_home(key: bytes, partition: int, partitions: int) -> bool:
    """Tell whether a key belongs into a partition, by the rule that all of Kafka's Java and Python clients follow."""
    home: int = (murmur2(key) & 0x7FFFFFFF) % partitions
    return home == partition


def misplaced(origin: Origin, taken: Taken) -> list[DeadLetter]:
    """Return the dead letters for a record that lies in a partition where its job does not belong."""
    reason = f"partition: {origin.partition} is not where the job {str(taken.job)[:100]!r} belongs"
    fix = "set the producer's partitioner to murmur2 (librdkafka: partitioner=murmur2_random)"
    return [
        _letter(origin, "wrong_partition", reason, fix, index=i, field="partition", job=taken.job)
        for i in taken.indexes
    ]


def late_letter(origin: Origin, code: str, event: Event, index: int | None) -> DeadLetter:
    """Return the dead letter of an event that came too late (`late`, `expired`)."""
    reason, fix = _LATE[code]
    reason = f"event {event.id!r} of job {event.job!r}: {reason}"
    return _letter(origin, code, reason, fix, index=index, field="ts", job=event.job)


def accepted_lines(origin: Origin, taken: Taken, counted: Sequence[int | None]) -> list[bytes]:
    """Return the events that count as lines of the accepted topic, each as it was told.

    An event that is taken in once more after a crash, alone or with others, has the same text.

    Args:
        origin: The record.
        taken: What it holds.
        counted: The indexes of the events that count.
    """
    value = origin.value
    assert value is not None
    # Line breaks in JSON are nothing but space.
    line = value if b"\n" not in value and b"\r" not in value else value.translate(_ONE_LINE)
    if not taken.letters and len(counted) == len(taken.events):
        return [line]
    items = split_array(line.decode())
    return [items[index or 0].encode() for index in counted]


def few(letters: list[DeadLetter]) -> list[DeadLetter]:
    """Return the dead letters of one record; one for all where each of them would repeat a long message."""
    if len(letters) < 2 or sum(len(letter.value or b"") for letter in letters) <= _MOST_BYTES:
        return letters
    first = letters[0]
    place = "" if first.index is None else f" at index {first.index}"
    reason = f"{len(letters)} events of the array were refused, the first{place}: {first.reason}"
    return [replace(first, reason=reason, index=None)]


def _refused(origin: Origin, error: DecodeError) -> DeadLetter:
    return _letter(origin, error.code, str(error), error.fix, index=error.index, field=error.field, whole=True)


def _unread(origin: Origin, records: int) -> DeadLetter:
    last = origin.offset + records - 1
    reason = f"the batch of the records {origin.offset} to {last} unpacks to more than {MOST_BYTES >> 20} MiB"
    letter = _letter(origin, "too_large", reason, "send fewer events in a batch; none of these was read")
    return replace(letter, value=None)


def _ahead(origin: Origin, event: Event, index: int | None) -> DeadLetter:
    reason = f"ts: {event.ts} of event {event.id!r} is more than 10 min ahead of the worker's clock"
    fix = "set the clocks of both machines right"
    return _letter(origin, "ahead_of_clock", reason, fix, index=index, field="ts", job=event.job)


def _letter(
    origin: Origin,
    code: str,
    reason: str,
    fix: str,
    *,
    index: int | None = None,
    field: str | None = None,
    job: str | None = None,
    whole: bool = False,
) -> DeadLetter:
    return DeadLetter(
        value=origin.value,
        key=origin.key,
        code=code,
        reason=reason if whole else f"{reason}; {fix}",
        field=field,
        fix=fix,
        topic=origin.topic,
        partition=origin.partition,
        offset=origin.offset,
        index=index,
        time=origin.now_us,
        job=job,
        handled=None,
    )
