"""What changed of a job since it was published last. Of that only digests are kept, packed: there are many jobs."""

import marshal
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, Self, TypeAlias, TypeVar

from ettwatch_core.cells import apart, cells, digest_of
from ettwatch_core.cut import Settled
from ettwatch_core.rules import CELL
from ettwatch_core.snapshot import Snapshot
from ettwatch_schemas import (
    AttemptSummary,
    AttemptsUpdate,
    Hour,
    JobSummary,
    PhaseKey,
    PhaseSpan,
    PhasesUpdate,
    SegmentsUpdate,
    encode_update,
)

__all__ = ["Publication", "Published"]

MOST_BYTES: Final = 4 << 20
"""Of one update, about: what is larger is sent in parts."""

_R = TypeVar("_R")
_K = TypeVar("_K")
_Key: TypeAlias = tuple[int, str, bool, int, int]
"""A PhaseKey as marshal reads it."""


class Publication(NamedTuple):
    """What has to be sent of a job; nothing where nothing changed.

    One update of a kind is the rule. Where it would be too large there are several: then no part of attempts or
    phases says that it is whole, and each part of segments says the same of the hours outside of the job.
    """

    summary: JobSummary | None
    attempts: list[AttemptsUpdate]
    phases: list[PhasesUpdate]
    segments: list[SegmentsUpdate]


class Published:
    """What was published of a job.

    Of a fresh one nothing is known: its first publication is whole. So it may be thrown away at any time; that costs
    one larger publication. Whoever goes on from an older state of a job (after a crash) has to call
    :meth:`start_over` when all events are folded that could have been published before, by a clock that is not behind
    the one before: what is sent until then may lose against newer rows of the past.
    """

    __slots__ = ("_sent", "_settled")

    def __init__(self) -> None:
        self._sent: bytes | None = None
        self._settled: list[Settled] = []

    @property
    def size(self) -> int:
        """Bytes that are kept, about."""
        return 100 + len(self._sent or b"")

    def start_over(self) -> None:
        """Forget what was sent: the next publication is whole. What was settled and not yet sent stays."""
        self._sent = None

    def settled(self, settled: Settled) -> None:
        """Take what became final; the next publication, of a snapshot made after that, sends it.

        Args:
            settled: As :func:`~ettwatch_core.settle` returned it. The state must not be stored before it is sent.
        """
        self._settled.append(settled)

    def publication(self, snap: Snapshot) -> Publication:
        """Return what to send, and take it for sent.

        Args:
            snap: How the job stands.
        """
        whole = self._sent is None
        sent = _Sent() if self._sent is None else _Sent.unpack(self._sent)
        digest = hash(encode_update(snap.summary))
        summary = None if digest == sent.summary else snap.summary
        sent.summary = digest
        attempts = _attempts(sent, snap, self._settled, whole)
        phases = _phases(sent, snap, self._settled, whole)
        segments = _segments(sent, snap, self._settled, whole)
        self._sent, self._settled = sent.pack(), []
        return Publication(summary, attempts, phases, segments)


@dataclass(slots=True)
class _Sent:
    """Digests of what was sent and is not final, by key.

    Attributes:
        summary: Of the summary, with its version.
        first: The first hour that has segments (µs); None if none has.
        last: The last one.
        steady: Of the snapshot that it was taken from.
        hours: Of hours by their begin (µs).
        attempts: Of attempts by their numbers.
        phases: Of phases.
    """

    summary: int | None = None
    first: int | None = None
    last: int | None = None
    steady: tuple[int, int] = (0, 0)
    hours: dict[int, int] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    phases: dict[_Key, int] = field(default_factory=dict)

    def pack(self) -> bytes:
        """Return it as bytes, for this process. A tenth of the size of the dictionaries."""
        # Phases have few names: an interned one is written once.
        phases = [(a, sys.intern(name), b, rank, at, digest) for (a, name, b, rank, at), digest in self.phases.items()]
        return marshal.dumps((self.summary, self.first, self.last, self.steady, self.hours, self.attempts, phases))

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return what was packed."""
        summary, first, last, steady, hours, attempts, phases = marshal.loads(data)
        return cls(summary, first, last, steady, hours, attempts, {row[:5]: row[5] for row in phases})


class _Part(NamedTuple, Generic[_R, _K]):
    """The lists of an update of attempts or phases."""

    whole: bool
    open: list[_R]
    final: list[_R]
    gone: list[_K]


def _attempts(sent: _Sent, snap: Snapshot, settled: list[Settled], whole: bool) -> list[AttemptsUpdate]:
    job, version = snap.summary.job, snap.summary.version
    final = {attempt.attempt: attempt for part in settled for attempt in part.attempts}
    now = {attempt.attempt: attempt for attempt in snap.attempts}
    changed, gone, sent.attempts = _compare(sent.attempts, now, final, lambda attempt: hash(_json(attempt)))
    part = _Part(whole, changed, list(final.values()), gone)
    return [AttemptsUpdate(job, version, *each) for each in _parts(part, lambda row: len(_json(row)))]


def _phases(sent: _Sent, snap: Snapshot, settled: list[Settled], whole: bool) -> list[PhasesUpdate]:
    job, version = snap.summary.job, snap.summary.version
    # Of two phases with one key the one that ends later counts: it comes later in the list, too.
    final: dict[_Key, PhaseSpan] = {PhaseKey.of(span): span for part in settled for span in part.spans}
    now: dict[_Key, PhaseSpan] = {PhaseKey.of(span): span for span in snap.spans}
    changed, gone, sent.phases = _compare(sent.phases, now, final, hash)
    part = _Part(whole, changed, list(final.values()), [PhaseKey(*key) for key in gone])
    return [PhasesUpdate(job, version, *each) for each in _parts(part, lambda span: 140 + len(span.phase))]


def _json(attempt: AttemptSummary) -> bytes:
    return attempt.__pydantic_serializer__.to_json(attempt)


def _compare(
    before: dict[_K, int], now: dict[_K, _R], final: dict[_K, _R], digest: Callable[[_R], int]
) -> tuple[list[_R], list[_K], dict[_K, int]]:
    """Return the rows that changed, the keys of those that are gone, and the digests of those that are not final."""
    digests = {key: digest(row) for key, row in now.items()}
    changed = [row for key, row in now.items() if before.get(key) != digests[key]]
    gone = [key for key in before if key not in now and key not in final]
    return changed, gone, digests


def _parts(all_: _Part[_R, _K], size: Callable[[_R], int]) -> list[_Part[_R, _K]]:
    """Return the lists in one part, if that is not too large, and nothing where there is nothing to say."""
    if not (all_.whole or all_.open or all_.final or all_.gone):
        return []
    opened, final = _chunks(all_.open, size), _chunks(all_.final, size)
    gone = _chunks(all_.gone, lambda key: 300)
    sizes = [*(c.bytes for c in opened), *(c.bytes for c in final), *(c.bytes for c in gone)]
    if sum(sizes) <= MOST_BYTES:
        return [all_]
    return [
        *(_Part(False, [], chunk.rows, []) for chunk in final),
        *(_Part(False, chunk.rows, [], []) for chunk in opened),
        *(_Part(False, [], [], chunk.rows) for chunk in gone),
    ]


class _Chunk(NamedTuple, Generic[_R]):
    """Rows that fit into one update, and how large they are, about."""

    bytes: int
    rows: list[_R]


def _chunks(rows: Iterable[_R], size: Callable[[_R], int]) -> list[_Chunk[_R]]:
    chunks: list[_Chunk[_R]] = []
    some: list[_R] = []
    taken = 0
    for row in rows:
        more = size(row)
        if some and taken + more > MOST_BYTES:
            chunks.append(_Chunk(taken, some))
            some, taken = [], 0
        some.append(row)
        taken += more
    if some:
        chunks.append(_Chunk(taken, some))
    return chunks


def _segments(sent: _Sent, snap: Snapshot, settled: list[Settled], whole: bool) -> list[SegmentsUpdate]:
    job, version = snap.summary.job, snap.summary.version
    first, last = _reach(snap.summary)
    changed = [Hour(cell, []) for cell in _left(sent, first, last)]
    # Also those that were sent just so: before a crash they may have been sent otherwise, as of a later time.
    changed += [Hour(cell, segments) for part in settled for cell, segments in cells(part.segments).items()]
    # Whole hours that lie in what was steady the last time are as they were: the drawing of them is the same.
    known = sent.steady[1] // CELL * CELL if sent.steady[0] == snap.steady[0] != 0 else 0
    at = bisect_right(snap.segments, known, key=lambda segment: segment.end)
    rest, filled = apart(snap.segments[at:])
    digests = {cell: digest for cell, digest in sent.hours.items() if cell < known}
    for cell, segments in cells(rest).items():
        if cell >= known:
            digests[cell] = digest_of(segments)
            if sent.hours.get(cell) != digests[cell]:
                changed.append(Hour(cell, segments))
    for each in filled:
        hours, digest = range(max(each.begin, known), each.end, CELL), digest_of(each.hour(0))
        digests.update(dict.fromkeys(hours, digest))
        changed += [Hour(cell, each.hour(cell)) for cell in hours if sent.hours.get(cell) != digest]
    sent.first, sent.last, sent.steady, sent.hours = first, last, snap.steady, digests
    if not (whole or changed):
        return []
    chunks = _chunks(changed, _hour_size) or [_Chunk(0, [])]
    return [SegmentsUpdate(job, version, whole, first, last, chunk.rows) for chunk in chunks]


def _hour_size(hour: Hour) -> int:
    return 100 + sum(50 + len(segment.stage) for segment in hour.segments)


def _reach(summary: JobSummary) -> tuple[int, int] | tuple[None, None]:
    """Return the first and the last hour of a job that have segments."""
    if summary.t0 == summary.t1:
        return None, None
    return summary.t0 // CELL * CELL, (summary.t1 - 1) // CELL * CELL


def _left(sent: _Sent, first: int | None, last: int | None) -> Iterable[int]:
    """Return the hours that had segments and have none any more: the job looked longer before."""
    if sent.first is None or sent.last is None:
        return []
    if first is None or last is None:
        return range(sent.first, sent.last + CELL, CELL)
    before = range(sent.first, min(first, sent.last + CELL), CELL)
    return [*before, *range(max(last + CELL, sent.first), sent.last + CELL, CELL)]
