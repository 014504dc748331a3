"""A job as it stands, with everything that is published of it."""

from typing import NamedTuple

from ettwatch_core.draft import Draft, advanced
from ettwatch_core.rules import CELL, Rules
from ettwatch_core.state import JobState
from ettwatch_core.summarize import (
    attempt_summaries,
    by_time,
    chain,
    job_summary,
    segments_of,
    spans_of,
    tallies_of,
    unsaved_of,
)
from ettwatch_core.timeline import lay_out
from ettwatch_schemas import AttemptSummary, JobSummary, PhaseSpan, Segment

__all__ = ["Snapshot", "snapshot"]


class _Parts(NamedTuple):
    summary: JobSummary
    attempts: list[AttemptSummary]
    segments: list[Segment]
    spans: list[PhaseSpan]
    final_before: int
    """Segments before this time (µs, a whole hour) were handed out as final; 0 where none was."""


class Snapshot(_Parts):
    """A job as it stands. What :func:`~ettwatch_core.settle` handed out before is not in the lists again.

    Attributes:
        steady: A number, and a time (µs): what lies before that time is the same in every snapshot with that number,
            unless it is 0. It says nothing of the job, so it plays no part where snapshots are compared.
    """

    steady: tuple[int, int] = (0, 0)


def snapshot(state: JobState, rules: Rules, now: int | None = None, *, keep: bool = True) -> Snapshot:
    """Return summary, attempts, segments and merged phases of a job.

    What it says is a function of the events and ``now``. The next snapshot of the same state costs less, where this
    one keeps its drawing.

    Args:
        state: Of a job with at least one event. Only its draft changes.
        rules: Settings.
        now: The clock (µs); never before the newest event of the job, which is also the default.
        keep: Keep the drawing for the next one. Keeping costs more than drawing: leave it where none follows soon.
    """
    draft = state.draft if isinstance(state.draft, Draft) else None
    base = state
    if draft is not None:
        base = draft.state
        base.newest, base.accepted, base.flags = state.newest, state.accepted, state.flags
    timeline = lay_out(base, rules, now)
    carry = base.carry
    tallies = tallies_of(timeline)
    discarded = unsaved_of(timeline, carry)
    attempts = attempt_summaries(state.job, timeline, carry, tallies, discarded)
    segments = segments_of(state.job, timeline)
    fresh = segments
    if carry is not None:
        segments = chain(carry.partial, segments)
    spans = spans_of(state.job, timeline)
    summary = job_summary(base, timeline, tallies, discarded)
    if draft is not None:
        attempts = sorted([*draft.attempts, *attempts], key=lambda row: row.attempt)
        segments = chain(draft.segments, segments)
        spans = by_time([*draft.spans, *spans])
    if keep:
        state.draft = draft = advanced(state, draft, timeline, fresh)
    final_before = 0 if state.carry is None else state.carry.until // CELL * CELL
    snap = Snapshot(summary, attempts, segments, spans, final_before)
    if draft is not None:
        snap.steady = draft.number, draft.until
    return snap
