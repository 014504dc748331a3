"""Where a job can be cut: nothing after the place looks back beyond it."""

from ettwatch_core.cut import Place
from ettwatch_core.groups import RawSpan
from ettwatch_core.line import Line
from ettwatch_core.rules import HEARD_WITHIN
from ettwatch_core.spans import Cluster
from ettwatch_core.state import JobState
from ettwatch_core.timeline import Timeline

__all__ = ["find_place"]


def find_place(
    timeline: Timeline, state: JobState, horizon: int, *, patience: bool, trial: bool = False
) -> Place | None:
    """Return the latest place where the job can be cut.

    Args:
        timeline: Of the unsettled part.
        state: The job.
        horizon: What was told before it (µs) is complete.
        patience: Wait for what would make a cut certain; otherwise the likely reading will do. An attempt that is
            over waits for a later, or more trusted, word on how it ended.
        trial: The cut can be taken back, so it need not wait for that.
    """
    carry = state.carry
    since = -1 if carry is None else carry.until
    lines = timeline.lines[:1] if patience and not trial else timeline.lines
    for i in range(len(lines) - 1, -1, -1):
        line = timeline.lines[i]
        cut = _find_cut(line, i == 0 and carry is not None and carry.mark is not None, horizon, patience)
        if cut is not None and line.loop is not None and line.loop.cuts[cut][0] > since:
            return Place(i, cut, line.loop.cuts[cut][0])
        start = line.bounds.start
        told = line.bounds.told_start or not patience
        if i > 0 and told and since < start < horizon:
            return Place(i, None, start)
    return None


def _find_cut(line: Line, resumed: bool, horizon: int, patience: bool) -> int | None:
    """Return the index of the latest cut of a loop that nothing straddles, where what came before is certain."""
    b, loop = line.bounds, line.loop
    if loop is None or line.first_batch is None or loop.heard is None or not loop.cuts:
        return None
    heard_until = 0
    if not resumed:
        first = min(max(rec[1], b.start) for recs in b.group.progress.values() for rec in recs if rec[1] <= b.end)
        heard_until = first + HEARD_WITHIN
    heard = [rec[1] for rec in b.group.progress.get(loop.heard, ())]
    sure = resumed or (b.told_start and loop.told)
    for j in range(len(loop.cuts) - 1, -1, -1):
        ts = loop.cuts[j][0]
        if ts >= horizon or (loop.ended and ts >= loop.end):
            continue
        if ts < line.first_batch or loop.first_advance is None or ts < loop.first_advance:
            return None  # the attempt has yet to show that it trains
        if ts <= heard_until:
            return None  # another rank could yet be the one to hear
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
