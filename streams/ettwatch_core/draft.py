"""A draft of a job: what was drawn once and new events do not reach back to is not drawn again.

Settling sums up what lies behind the lateness, for good. A draft does the same, up to the newest place where the job
can be cut, beside the state and on trial: as soon as an event reaches back beyond that place the draft is thrown away,
and the next snapshot draws the unsettled part anew. So a snapshot of a running job costs what is new in it, and nothing
that a snapshot says depends on whether there was a draft.
"""

from collections.abc import Iterable
from itertools import count
from typing import Final

from ettwatch_core import records as r
from ettwatch_core.cut import cut_at
from ettwatch_core.keep import Keep
from ettwatch_core.place import find_place
from ettwatch_core.records import Record
from ettwatch_core.state import JobState, reaches_back
from ettwatch_core.summarize import chain
from ettwatch_core.timeline import Timeline
from ettwatch_schemas import AttemptSummary, PhaseSpan, Segment

__all__ = ["Draft", "advanced"]

WORTH: Final = 30
"""Records that have to be new for a (further) cut to be worth its cost: a snapshot costs a cut for every so many
records, and the drawing of half as many."""

_numbers: Final = count(1)


class Draft:
    """A copy of the state, cut at a newer place, and what lies before that place."""

    __slots__ = ("attempts", "kept", "number", "parents", "segments", "spans", "state")

    def __init__(self, job: str, number: int) -> None:
        self.number = number
        """The same for a draft and those that it is cut further into; no other draft has it."""
        self.state = JobState(job)
        self.kept = 0
        """How many records it began with."""
        self.segments: list[Segment] = []
        self.attempts: list[AttemptSummary] = []
        self.spans: list[PhaseSpan] = []
        self.parents: set[tuple[int, str]] = set()
        """Rank and span of what was named as a parent."""

    @property
    def until(self) -> int:
        """Where it is cut (µs)."""
        carry = self.state.carry
        assert carry is not None
        return carry.until

    def follow(self, key: str | int, record: Record) -> bool:
        """Take a new record over; ``False`` if it reaches back too far for that."""
        carry = self.state.carry
        assert carry is not None
        kind, attempt = record[0], record[2]
        if record[1] <= carry.until or kind == r.SUBMIT or reaches_back(carry, record, self.state):
            return False
        if 0 <= attempt != carry.fixed.number:
            return False  # an old attempt speaks, or a new one tells where it goes on from
        if kind == r.PHASE_END and not self._begun(record[3], record[4], carry.until):
            return False
        if kind == r.PHASE_START and not self._fits_in(record, carry.until):
            return False
        self.state.records[key] = record
        return True

    def _fits_in(self, start: Record, since: int) -> bool:
        """Tell whether a new span neither names a parent before the cut nor was named by a child there."""
        rank, span, parent = start[3], start[4], start[6]
        if (rank, span) in self.parents:
            return False
        return parent is None or self._begun(rank, parent, since)

    def _begun(self, rank: int, span: str, since: int) -> bool:
        """Tell whether a span is known to have begun behind the cut."""
        return any(
            rec[0] == r.PHASE_START and rec[3] == rank and rec[4] == span and rec[1] > since
            for rec in self.state.records.values()
        )


def _parents(recs: Iterable[Record]) -> set[tuple[int, str]]:
    return {(rec[3], rec[6]) for rec in recs if rec[0] == r.PHASE_START and rec[6] is not None}


def advanced(state: JobState, draft: Draft | None, timeline: Timeline, segments: list[Segment]) -> Draft | None:
    """Return a draft cut as late as possible, or the one given where a cut is not worth it.

    Args:
        state: The job; its own records are not touched.
        draft: The draft so far.
        timeline: Of the unsettled part of the draft, else of the state.
        segments: Of the timeline.
    """
    base = state if draft is None else draft.state
    if len(base.records) < WORTH + (0 if draft is None else draft.kept):
        return draft
    place = find_place(timeline, base, state.newest + 1, patience=True, trial=True)
    if place is None:
        return draft
    carry, before = cut_at(base, timeline, place._replace(exact=True), segments)
    keep = Keep(timeline, place, state.newest + 1, state.newest + 1)
    new = Draft(state.job, next(_numbers) if draft is None else draft.number)
    new.state.records = keep.sort_out(base.records, carry)
    new.kept = len(new.state.records)
    new.state.carry = carry
    new.parents = _parents(rec for key, rec in base.records.items() if key not in new.state.records)
    if draft is not None:
        new.segments, new.attempts, new.spans = draft.segments, draft.attempts, draft.spans
        new.parents |= draft.parents
    begun = {(rec[3], rec[4]) for rec in new.state.records.values() if rec[0] == r.PHASE_START}
    if begun & new.parents or _parents(new.state.records.values()) - begun:
        return draft  # a child and its parent would come apart
    new.segments = chain(new.segments, before.segments)
    new.attempts = [*new.attempts, *before.attempts]
    new.spans = [*new.spans, *before.spans]
    return new
