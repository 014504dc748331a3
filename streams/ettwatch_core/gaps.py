"""Rule 6: what the time in the loop was, where no phase is open."""

from collections.abc import Sequence

from ettwatch_core.attempts import Bounds
from ettwatch_core.charge import Piece
from ettwatch_core.loop import Loop
from ettwatch_core.ranges import Ranges
from ettwatch_schemas import EFFECTIVE

__all__ = ["Spent", "charge_gaps", "share"]

STALL = "wasted_training.data_stall"
HANG = "wasted_training.hang"
NO_PROGRESS = "wasted_training.no_progress"
REWORK = "wasted_training.rework"


Spent = tuple[int, int, int, int]
"""In-loop time (effective and rework) spent on positions: lowest, highest, amount (µs), and until when (µs)."""


def share(amount: int, part: int, whole: int) -> int:
    """Return ``amount * part / whole`` rounded half to even, in integers."""
    quotient, rest = divmod(amount * part, whole)
    if 2 * rest > whole or (2 * rest == whole and quotient & 1):
        quotient += 1
    return quotient


def charge_gaps(
    b: Bounds, loop: Loop, since: int, busy: Sequence[Piece], passed: Ranges
) -> tuple[list[Piece], list[Spent]]:
    """Charge the free time from ``since`` to the end of the loop.

    Args:
        b: The attempt.
        loop: Its loop.
        since: The first batch, or the last cut of a settled part (µs).
        busy: The time charged to phases, sorted.
        passed: Positions that earlier gaps of the job passed; those of this loop are added.

    Returns:
        Pieces in time order, and what was spent on which positions.
    """
    out: list[Piece] = []
    spent: list[Spent] = []
    at = since
    waited = loop.waited_by(since)
    limit = loop.hang_limit
    nxt = 0
    count = len(busy)
    while nxt < count and busy[nxt][1] <= at:
        nxt += 1
    for ts, advance, before, after, high in loop.cuts:
        if ts < at:  # a rollback before the first batch
            continue
        if nxt < count and busy[nxt][0] < ts:
            free, nxt = _free(busy, nxt, at, ts)
            length = sum(e - s for s, e in free)
        else:
            free = None
            length = ts - at
        stall = high - waited
        waited = high
        stall = min(stall, length)
        rest = length - stall
        if not advance:
            lost, stage = rest, NO_PROGRESS
        elif rest > limit:
            lost, stage = rest, HANG
            passed.add(before, after)
        else:
            seen = passed.covered(before, after)
            lost, stage = (share(rest, seen, after - before) if seen else 0), REWORK
            passed.add(before, after)
            spent.append((before, after, rest, ts))
        if free is None:
            _lay_plain(out, at, ts, stall, lost, stage)
        else:
            _lay(out, free, stall, lost, stage)
        at = ts
    if at < loop.end:
        _tail(b, loop, at, waited, busy, nxt, passed, out)
    return out, spent


def _tail(
    b: Bounds,
    loop: Loop,
    at: int,
    waited: int,
    busy: Sequence[Piece],
    nxt: int,
    passed: Ranges,
    out: list[Piece],
) -> None:
    """Charge what follows the last cut."""
    free, _ = _free(busy, nxt, at, loop.end)
    length = sum(e - s for s, e in free)
    stall = min(loop.waited - waited, length)
    rest = length - stall
    if not loop.ended and b.outcome in ("succeeded", "cancelled"):
        stage = "shutdown"
    elif rest > loop.hang_limit:
        stage = HANG
    elif loop.ended or b.failed:
        stage = NO_PROGRESS
    else:
        stage = REWORK if passed.holds(loop.position) else EFFECTIVE
    _lay(out, free, stall, rest, stage)


def _free(busy: Sequence[Piece], nxt: int, start: int, end: int) -> tuple[list[tuple[int, int]], int]:
    """Return the free stretches of ``[start, end)`` and the first piece that reaches beyond ``end``."""
    free = []
    at = start
    while nxt < len(busy) and busy[nxt][0] < end:
        busy_from, busy_to, _ = busy[nxt]
        if busy_from > at:
            free.append((at, busy_from))
        at = max(at, min(busy_to, end))
        if busy_to > end:
            break
        nxt += 1
    if at < end:
        free.append((at, end))
    return free, nxt


def _lay_plain(out: list[Piece], start: int, end: int, stall: int, lost: int, stage: str) -> None:
    """Lay the amounts of a gap without phases over it: data stall, then what was lost, then effective time."""
    if stall:
        out.append((start, start + stall, STALL))
        start += stall
    if lost:
        out.append((start, start + lost, stage))
        start += lost
    if start < end:
        out.append((start, end, EFFECTIVE))


def _lay(out: list[Piece], free: Sequence[tuple[int, int]], stall: int, lost: int, stage: str) -> None:
    """The same over the free stretches of a gap."""
    for start, end in free:
        first = min(stall, end - start)
        second = min(lost, end - start - first)
        stall -= first
        lost -= second
        _lay_plain(out, start, end, first, second, stage)
