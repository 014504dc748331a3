"""Settling: what no acceptable event can change any more is summed up, and its events are let go.

With a lateness setting, every event before ``newest - lateness`` is in. A job is cut at a time F before that where the
rules look back no further: the start of an attempt, or an advance (or rollback) in a loop that no phase straddles.
Everything up to F becomes a :class:`~ettwatch_core.carry.Carry`; the records behind it stay, and the same rules go on
from there. So the state holds little more than one lateness of events, however long the job runs.
"""

from typing import Final

from ettwatch_core.cut import Settled, cut_at
from ettwatch_core.keep import Keep
from ettwatch_core.place import find_place
from ettwatch_core.rules import CELL, Rules
from ettwatch_core.state import JobState
from ettwatch_core.timeline import lay_out

__all__ = ["Settled", "settle"]

PATIENCE: Final = 800
"""Records older than the lateness that may wait for what would make a cut certain: the end of an open span, the
``attempt_started`` or ``training_started`` that was never told, another ``attempt_ended`` of an attempt that is over.
Beyond, the likely reading becomes final."""


def settle(state: JobState, rules: Rules, *, every: int = CELL) -> Settled | None:
    """Settle what can be settled, if the job's newest event moved on by ``every`` (µs) since the last try.

    Args:
        state: Changed in place; its summary and timeline stay the same.
        rules: With ``lateness=None`` nothing is ever settled.
        every: How far the job moves between two tries; one try lays out the unsettled part.

    Returns:
        What became final, or ``None`` if nothing did.
    """
    if rules.lateness is None:
        return None
    if state.newest < state.settle_from:
        return None
    if not state.settle_from:  # nothing can be settled before one lateness has passed
        state.settle_from = state.newest + rules.lateness
        return None
    state.settle_from = state.newest + every
    horizon = state.newest - rules.lateness
    timeline = lay_out(state, rules)
    patience = sum(1 for rec in state.records.values() if rec[1] < horizon) <= PATIENCE
    place = find_place(timeline, state, horizon, patience=patience)
    if place is None:
        return None
    carry, settled = cut_at(state, timeline, place)
    keep = Keep(timeline, place, horizon, rules.lateness)
    state.records = keep.sort_out(state.records, carry)
    state.carry = carry
    state.draft = None
    return settled
