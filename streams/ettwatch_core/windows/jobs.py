"""What is remembered of one job: what it told last of each hour, each attempt, and of itself. Pure.

For each the greatest version counts, and a final attempt before all others, as everywhere (docs/messages.md). So what
is remembered is a function of the set of messages, whatever their order and however often each came.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from ettwatch_core.windows.amounts import FAILURES, INFRA, PREEMPTED, TTR, TTS, Amounts, Buckets, add
from ettwatch_core.windows.cells import Cell, Standing
from ettwatch_core.windows.dims import Group
from ettwatch_core.windows.histogram import bucket_of
from ettwatch_core.windows.sizes import HOUR, MINUTE_US
from ettwatch_schemas import AttemptSummary, AttemptsUpdate, Columns, SegmentsUpdate

__all__ = ["Job", "Mark", "Told", "by_hour", "mark_of", "marks_at"]

_OWN_FAULT: Final = ("user_code", "config")
_US: Final = 1_000_000


Hours: TypeAlias = list[tuple[int, int, Columns | None]]
"""Number of an hour, version, and its segments, if there are any."""


class Mark(NamedTuple):
    """What counts of an attempt. Times in µs."""

    start: int
    batch: int | None
    end: int
    tts: int | None
    ttr: int | None
    failure: str
    """Which failures it counts as: letters of `n`, `i` (not the user's fault) and `p` (preempted)."""


class Told(NamedTuple):
    """How an attempt was told last."""

    final: bool
    version: int
    mark: Mark | None
    """None: a correction removed it."""

    @property
    def rank(self) -> tuple[bool, int]:
        """The greater counts."""
        return self.final, self.version


@dataclass(slots=True)
class Job:
    """What is remembered of one job.

    Attributes:
        version: Of its summary; -1 while none came.
        group: Where it counts; None while no summary came.
        closed: Whether it has ended, and is let go by the worker one lateness later.
        heard: When something was said of it last (minutes).
        cells: Scope hour, the version and what it adds; packed where it is long ago.
        bounds: Version, first and last hour: what is outside with a smaller version is empty.
        attempts: Scope number.
        whole: Version of the newest message that told all attempts that were not final, and which it told.
    """

    version: int
    group: Group | None
    closed: bool
    heard: int
    cells: dict[int, tuple[int, Cell | bytes]]
    bounds: tuple[int, int, int]
    attempts: dict[int, Told]
    whole: tuple[int, frozenset[int]]

    @classmethod
    def fresh(cls) -> "Job":
        """Return a job of which nothing is known."""
        return cls(-1, None, False, 0, {}, (-1, 0, 0), {}, (-1, frozenset()))

    def standing(self) -> Standing:
        """Return what has to be known of its attempts to say how it stood."""
        told = {number: told.mark for number, told in sorted(self.attempts.items()) if told.mark is not None}
        if not told:
            return Standing()
        first = min(told)
        batches = {number: mark.batch for number, mark in told.items() if mark.batch is not None}
        return Standing(first, told[first].start, batches)

    def hear_hours(self, update: SegmentsUpdate) -> Hours:
        """Return the hours that an update changes: number, version, and segments; and take its bounds."""
        width = HOUR * MINUTE_US
        out: Hours = []
        version = update.version
        if update.whole and version >= self.bounds[0]:
            none = update.first is None or update.last is None
            first, last = (1, 0) if none else ((update.first or 0) // width, (update.last or 0) // width)
            self.bounds = version, first, last
            listed = {hour.cell // width for hour in update.hours}
            for hour, (before, _) in self.cells.items():
                if not first <= hour <= last and hour not in listed and before < version:
                    out.append((hour, version, None))
        least, first, last = self.bounds
        for told in update.hours:
            hour = told.cell // width
            held = self.cells.get(hour)
            outside = version < least and not first <= hour <= last
            if not outside and (held is None or version >= held[0]):
                out.append((hour, version, told.columns))
        return out

    def hear_attempts(self, update: AttemptsUpdate) -> dict[int, tuple[Mark | None, Mark | None]]:
        """Take an update; return what changed, by attempt: what counted before, and what counts now."""
        changed: dict[int, tuple[Mark | None, Mark | None]] = {}

        def put(number: int, told: Told) -> None:
            before = self.attempts.get(number)
            if before is not None and told.rank < before.rank:
                return
            self.attempts[number] = told
            old = None if before is None else before.mark
            if old != told.mark:
                changed[number] = changed.get(number, (old, None))[0], told.mark

        version = update.version
        least, listed = self.whole
        for number in update.gone:
            put(number, Told(False, version, None))
        for attempt in update.open:
            if version >= least or attempt.attempt in listed:
                put(attempt.attempt, Told(False, version, mark_of(attempt)))
        for attempt in update.final:
            put(attempt.attempt, Told(True, version, mark_of(attempt)))
        if update.whole and version >= least:
            told_now = {a.attempt for a in (*update.open, *update.final)} | set(update.gone)
            self.whole = version, frozenset(told_now)
            for number, told in list(self.attempts.items()):
                if number not in told_now and told.rank < (False, version):
                    put(number, Told(False, version, None))
        return changed


def mark_of(attempt: AttemptSummary) -> Mark:
    """Return what counts of an attempt."""
    failure = ""
    if attempt.outcome in ("failed", "preempted"):
        infra = "" if attempt.cause in _OWN_FAULT else "i"
        failure = "n" + infra + ("p" if attempt.outcome == "preempted" else "")
    # Of an attempt that goes on, the end is only the time as of which it was told.
    return Mark(
        attempt.start,
        attempt.first_batch,
        attempt.end if failure else 0,
        _us(attempt.tts_s),
        _us(attempt.ttr_s),
        failure,
    )


def marks_at(mark: Mark | None, times: int, into: dict[int, Amounts]) -> None:
    """Add what an attempt counts, by minute, or take it away."""
    if mark is None:
        return
    for letter, us in ((TTS, mark.tts), (TTR, mark.ttr)):
        if us is not None and mark.batch is not None:
            add(into.setdefault(mark.batch // MINUTE_US, {}), {f"{letter}{bucket_of(us)}": 1}, times)
    if mark.failure:
        counts = {FAILURES: 1}
        if "i" in mark.failure:
            counts[INFRA] = 1
        if "p" in mark.failure:
            counts[PREEMPTED] = 1
        add(into.setdefault(mark.end // MINUTE_US, {}), counts, times)


def by_hour(minutes: dict[int, Amounts]) -> dict[int, Buckets]:
    """Sort amounts by minute into hours."""
    out: dict[int, Buckets] = {}
    for minute, amounts in minutes.items():
        if amounts:
            out.setdefault(minute // HOUR, {})[minute % HOUR] = amounts
    return out


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * _US)
