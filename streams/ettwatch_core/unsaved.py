"""What failures discarded: in-loop time spent on positions that the job had to go through again."""

from collections.abc import Iterable, Sequence
from typing import Final

from ettwatch_core.gaps import Spent, share

__all__ = ["KEPT", "thin", "unsaved"]

NEWEST: Final = 2_000
"""Settled reports (the newest) at which it stays exact: eight hours of one every 15 s."""

SPARE: Final = 500
"""So many more may wait before the list is made shorter."""

KEPT: Final = 128
"""Durable positions (the newest) at which a settled attempt's spending stays exact."""


def unsaved(spent: Iterable[Spent], position: int | None) -> int:
    """Return the time (µs) spent on positions above ``position``; all of it where no position is known.

    A gap across the position counts by its share of positions above it, rounded half to even.
    """
    total = 0
    for low, high, amount, _ in spent:
        if position is None or low >= position:
            total += amount
        elif high > position:
            total += share(amount, high - position, high - low)
    return total


def thin(spent: Sequence[Spent], durables: Sequence[int]) -> list[Spent]:
    """Keep the list short: of all but the newest :data:`NEWEST`, make neighbours one.

    The job can go on from any position, but it will from a recent or a durable one: there, the answer of
    :func:`unsaved` does not change. Elsewhere it becomes proportional within the merged stretch.

    Args:
        spent: In time order.
        durables: Positions of durable checkpoints; the newest :data:`KEPT` stay exact.
    """
    if len(spent) <= NEWEST + SPARE:
        return list(spent)
    exact = sorted(durables)[-KEPT:]
    out: list[Spent] = []
    merged_last = False
    at = 0
    for low, high, amount, ts in sorted(spent[:-NEWEST]):
        while at < len(exact) and exact[at] < low:
            at += 1
        holds = at < len(exact) and low < exact[at] < high
        border = at < len(exact) and exact[at] == low
        if merged_last and not holds and not border and out[-1][1] == low:
            out[-1] = (out[-1][0], high, out[-1][2] + amount, max(out[-1][3], ts))
        else:
            out.append((low, high, amount, ts))
        merged_last = not holds
    return out + list(spent[-NEWEST:])
