"""Records sorted by what they belong to: the job as a whole, or one of its attempts."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ettwatch_core import records as r
from ettwatch_core.records import Record, content_key
from ettwatch_schemas import component_of

__all__ = ["Group", "RawSpan", "group"]


class RawSpan(NamedTuple):
    """One span as told: of several starts or ends the earliest. ``end`` is ``None`` where none was told."""

    start: int
    end: int | None
    rank: int
    span: str
    phase: str
    parent: str | None
    background: bool
    attempt: int

    @property
    def negative(self) -> bool:
        """Tell whether the span ends before it starts."""
        return self.end is not None and self.end < self.start


class Group:
    """The records of one attempt, by kind."""

    __slots__ = (
        "durables",
        "ends",
        "heartbeats",
        "number",
        "phase_ends",
        "phase_starts",
        "progress",
        "spans",
        "starts",
        "training_ends",
        "training_starts",
        "waits",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.starts: list[Record] = []
        self.ends: list[Record] = []
        self.phase_starts: list[Record] = []
        self.phase_ends: list[Record] = []
        self.training_starts: list[Record] = []
        self.training_ends: list[Record] = []
        self.durables: list[Record] = []
        self.heartbeats: list[Record] = []
        self.progress: dict[int, list[Record]] = {}
        self.spans: list[RawSpan] = []
        """Spans of the attempt itself."""
        self.waits: list[RawSpan] = []
        """Its ``scheduling`` spans: they may lie outside the attempt."""

    def join_spans(self) -> None:
        """Pair starts and ends into :attr:`spans` and :attr:`waits`."""
        starts: dict[tuple[int, str], Record] = {}
        for rec in self.phase_starts:
            key = (rec[3], rec[4])
            old = starts.get(key)
            if old is None or (rec[1], content_key(rec)) < (old[1], content_key(old)):
                starts[key] = rec
        ends: dict[tuple[int, str], int] = {}
        for rec in self.phase_ends:
            key = (rec[3], rec[4])
            if rec[1] < ends.get(key, rec[1] + 1):
                ends[key] = rec[1]
        for key, rec in starts.items():
            raw = RawSpan(rec[1], ends.get(key), rec[3], rec[4], rec[5], rec[6], rec[7], self.number)
            (self.waits if component_of(raw.phase) == "scheduling" else self.spans).append(raw)

    def own_times(self) -> Iterator[int]:
        """Yield the times of all its events other than those of ``scheduling`` spans."""
        waits = {(w.rank, w.span) for w in self.waits}
        for recs in (
            self.starts,
            self.ends,
            self.training_starts,
            self.training_ends,
            self.durables,
            self.heartbeats,
        ):
            for rec in recs:
                yield rec[1]
        for recs in (self.phase_starts, self.phase_ends):
            for rec in recs:
                if (rec[3], rec[4]) not in waits:
                    yield rec[1]
        for recs in self.progress.values():
            for rec in recs:
                yield rec[1]

    def all_times(self) -> Iterator[int]:
        """Yield the times of all its events."""
        yield from self.own_times()
        waits = {(w.rank, w.span) for w in self.waits}
        for recs in (self.phase_starts, self.phase_ends):
            for rec in recs:
                if (rec[3], rec[4]) in waits:
                    yield rec[1]

    def trains_before(self, ts: int) -> bool:
        """Tell whether it said ``training_started`` or ``progress`` before a time."""
        return any(rec[1] < ts for rec in self.training_starts) or any(
            rec[1] < ts for recs in self.progress.values() for rec in recs
        )


class Grouped(NamedTuple):
    """All records of a job: those of the job as a whole, and its groups by rising number."""

    submits: list[Record]
    job_ends: list[Record]
    groups: list[Group]


def group(recs: Iterable[Record]) -> Grouped:
    """Sort records into groups. The order of the input does not matter."""
    submits: list[Record] = []
    job_ends: list[Record] = []
    groups: dict[int, Group] = {}
    for rec in recs:
        kind = rec[0]
        number = rec[2]
        if number < 0:
            (submits if kind == r.SUBMIT else job_ends).append(rec)
            continue
        g = groups.get(number)
        if g is None:
            g = groups[number] = Group(number)
        if kind == r.PROGRESS:
            ranks = g.progress
            rank = rec[3]
            if rank in ranks:
                ranks[rank].append(rec)
            else:
                ranks[rank] = [rec]
        else:
            _list_of(g, kind).append(rec)
    ordered = [groups[number] for number in sorted(groups)]
    for g in ordered:
        g.join_spans()
    return Grouped(submits, job_ends, ordered)


_LISTS = {
    r.PHASE_START: "phase_starts",
    r.PHASE_END: "phase_ends",
    r.TRAINING_START: "training_starts",
    r.TRAINING_END: "training_ends",
    r.DURABLE: "durables",
    r.ATTEMPT_START: "starts",
    r.ATTEMPT_END: "ends",
    r.HEARTBEAT: "heartbeats",
}


def _list_of(g: Group, kind: int) -> list[Record]:
    recs: list[Record] = getattr(g, _LISTS[kind])
    return recs
