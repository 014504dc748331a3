"""Settling: what no acceptable event can change any more is summed up, and its events are let go.

With a lateness setting, every event before ``newest - lateness`` is in. A job is cut at a time F before that where the
rules look back no further: the start of an attempt, or an advance (or rollback) in a loop that no phase straddles.
Everything up to F becomes a :class:`~ettwatch_core.carry.Carry`; the records behind it stay, and the same rules go on
from there. So the state holds little more than one lateness of events, however long the job runs.
"""

from typing import Final

from ettwatch_core.cut import Place, Settled, cut_at
from ettwatch_core.groups import RawSpan
from ettwatch_core.keep import Keep
from ettwatch_core.line import Line
from ettwatch_core.rules import CELL, HEARD_WITHIN, Rules
from ettwatch_core.spans import Cluster
from ettwatch_core.state import JobState
from ettwatch_core.timeline import Timeline, lay_out

__all__ = ["Settled", "settle"]

PATIENCE: Final = 800
"""Records older than the lateness that may wait for what would make a cut certain: the end of an open span, the
``attempt_started`` or ``training_started`` that was never told. Beyond, the likely reading becomes final."""


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
    place = _find(timeline, state, horizon)
    if place is None:
        return None
    carry, settled = cut_at(state, timeline, place)
    keep = Keep(timeline, place, horizon, rules.lateness)
    if any(keep.zombie(rec) for rec in state.records.values()):
        carry.flags.add("zombie")
    state.records = {key: rec for key, rec in state.records.items() if keep(rec)}
    state.carry = carry
    return settled


def _find(timeline: Timeline, state: JobState, horizon: int) -> Place | None:
    """Return the latest place before ``horizon`` where the job can be cut."""
    carry = state.carry
    since = -1 if carry is None else carry.until
    patience = sum(1 for rec in state.records.values() if rec[1] < horizon) <= PATIENCE
    for i in range(len(timeline.lines) - 1, -1, -1):
        line = timeline.lines[i]
        cut = _findcut_at(line, i == 0 and carry is not None and carry.mark is not None, horizon, patience)
        if cut is not None and line.loop is not None and line.loop.cuts[cut][0] > since:
            return Place(i, cut, line.loop.cuts[cut][0])
        start = line.bounds.start
        told = line.bounds.told_start or not patience
        if i > 0 and told and since < start < horizon:
            return Place(i, None, start)
    return None


def _findcut_at(line: Line, resumed: bool, horizon: int, patience: bool) -> int | None:
    """Return the index of the latest cut of a loop that nothing straddles, where what came before is certain."""
    b, loop = line.bounds, line.loop
    if loop is None or line.first_batch is None or loop.heard is None or not loop.cuts:
        return None
    if not resumed:
        first = min(max(rec[1], b.start) for recs in b.group.progress.values() for rec in recs if rec[1] <= b.end)
        if first + HEARD_WITHIN >= min(horizon, b.end):
            return None
    heard = [rec[1] for rec in b.group.progress.get(loop.heard, ())]
    sure = resumed or (b.told_start and loop.told)
    for j in range(len(loop.cuts) - 1, -1, -1):
        ts = loop.cuts[j][0]
        if ts >= horizon or (loop.ended and ts >= loop.end):
            continue
        if ts < line.first_batch or loop.first_advance is None or ts < loop.first_advance:
            return None  # the attempt has yet to show that it trains
        if j + 1 < len(loop.cuts) and loop.cuts[j + 1][0] == ts:
            continue
        if patience and (not sure or any(_waits_on(raw, ts) for raw in b.group.waits)):
            continue
        if any(_straddles(c, ts, patience) for c in line.clusters):
            continue
        if heard.count(ts) == sum(1 for cut in loop.cuts if cut[0] == ts):
            return j
    return None


def _waits_on(wait: RawSpan, ts: int) -> bool:
    """Tell whether a wait for hardware could yet be told to have lasted into the attempt."""
    return wait.end is None and not wait.background and wait.start < ts


def _straddles(c: Cluster, ts: int, patience: bool) -> bool:
    if c.start >= ts:
        return False
    return c.end >= ts or (patience and any(part.open for part in c.parts))
