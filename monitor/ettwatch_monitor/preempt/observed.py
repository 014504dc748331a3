"""From what is known of an open attempt to a running job. What is not known is said, and taken for the worst."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

from ettwatch_monitor.preempt.history import Measured
from ettwatch_monitor.preempt.running import Running, State

__all__ = ["GAPS", "Durable", "Observed", "running_of"]

GAPS: Final = 20
"""The interval is the median of so many newest gaps between checkpoints."""
_US: Final = 1_000_000
_COUNTS_ANEW: Final = frozenset({"position_reset", "rollback"})
"""Flags after which positions of checkpoints and of the loop cannot be compared."""


class Durable(NamedTuple):
    """A checkpoint: when it became durable, its position, when its save began (None where not told), and by whom."""

    ts: int
    position: int
    started: int | None
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """An open attempt as the database knows it. Times are µs since the epoch.

    Attributes:
        as_of: The time that counted as now when the state was made.
        started: When the attempt began.
        first_batch: When its start-up was over; None before that.
        last_advance: When its position advanced last.
        loop_end: When its loop ended; None while it goes on.
        start_position, end_position: Samples at the begin of its loop, and at the last advance.
        trained_s: What of its time went forward in the data, for the first time or again (seconds).
        flags: What was odd about its events.
        durables: Checkpoints of the job, of this and of earlier attempts.
    """

    job: str
    team: str
    model: str
    cluster: str
    attempt: int
    gpus: int
    as_of: int
    started: int
    first_batch: int | None
    last_advance: int | None
    loop_end: int | None
    start_position: int | None
    end_position: int | None
    trained_s: float
    flags: Sequence[str]
    durables: Sequence[Durable]


def running_of(seen: Observed, recovery: Measured, startup: Measured) -> Running:
    """Return the job as the policy sees it.

    Its work above the newest durable position is the share of its samples that lie above it, times the time that went
    into training in this attempt: what its end would discard by the published rules (`unsaved_s`). Where positions
    cannot be compared, all time since the save began counts; where that is not known, all since the first batch.
    """
    notes: list[str] = []
    in_order = sorted(seen.durables, key=lambda d: (d.ts, d.position, d.attempt))
    own = [d for d in in_order if d.attempt == seen.attempt]
    state: State = "starting" if seen.first_batch is None else "ending" if seen.loop_end is not None else "training"
    unsaved = 0.0
    seen_us = seen.last_advance or seen.as_of
    newest = own[-1] if own else None
    if seen.first_batch is not None:
        if newest is None:
            notes.append("no checkpoint of this attempt seen: all of its training counts as lost")
        unsaved = _unsaved_s(seen, seen.first_batch, newest, notes)
    interval, lag = _interval_s(in_order), _lag_s(in_order)
    if state == "training":
        if interval is None:
            notes.append("interval between checkpoints not known")
        elif lag is None:
            notes.append("nobody tells when its saves begin: what waiting would save is not known")
    if recovery.seconds is None:
        notes.append("no recovery was ever measured: the longest of the others is taken, or half an hour")
    return Running(
        job=seen.job,
        gpus=seen.gpus,
        state=state,
        started_us=seen.started,
        seen_us=seen_us,
        unsaved_s=max(0.0, unsaved),
        recovery_s=recovery.seconds,
        startup_s=startup.seconds,
        saved_us=newest.ts if newest is not None else seen.first_batch,
        interval_s=interval,
        lag_s=lag,
        team=seen.team,
        model=seen.model,
        cluster=seen.cluster,
        attempt=seen.attempt,
        notes=tuple(notes),
    )


def _unsaved_s(seen: Observed, first_batch: int, newest: Durable | None, notes: list[str]) -> float:
    low, high = seen.start_position, seen.end_position
    until = seen.last_advance or seen.as_of
    if newest is None:
        return seen.trained_s
    if low is None or high is None or high <= low or _COUNTS_ANEW & {*seen.flags}:
        since = newest.started or first_batch
        what = "its last save" if newest.started else "the first batch"
        notes.append(f"its positions cannot be compared: all time since {what} counts as lost")
        return max(0, until - since) / _US
    return seen.trained_s * min(1.0, max(0, high - newest.position) / (high - low))


def _interval_s(durables: Sequence[Durable]) -> float | None:
    """Median time from durable to durable within an attempt, of the newest ones; None of fewer than two.

    One checkpoint may be told several times, by several ranks: only one that holds more counts as the next.
    """
    gaps = []
    last: Durable | None = None
    for one in durables:
        if last is not None and one.attempt == last.attempt:
            if one.position == last.position:
                continue
            gaps.append((one.ts - last.ts) / _US)
        last = one
    return median(gaps[-GAPS:]) if gaps else None


def _lag_s(durables: Sequence[Durable]) -> float | None:
    """The longest that one of the newest checkpoints took to become durable; None where nobody told."""
    lags = [(d.ts - d.started) / _US for d in durables[-GAPS:] if d.started is not None and d.started <= d.ts]
    return max(lags) if lags else None
