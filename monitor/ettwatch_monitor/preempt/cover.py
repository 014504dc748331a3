"""The cheapest set of things that together are large enough: a knapsack turned around."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["MOST_CELLS", "Cover", "Item", "cheapest"]

MOST_CELLS: Final = 100_000_000
"""Up to so many cells (things that matter, times sizes that can be reached) the answer is exact: 100 MB, a second."""
_MOST_COST: Final = 2**61


class Item(NamedTuple):
    """A thing: its size (at least 1), its cost (at least 0), and its name, by which equals are told apart."""

    size: int
    cost: int
    name: str


class Cover(NamedTuple):
    """A set of things.

    Attributes:
        chosen: Which, by their numbers in what was given, rising.
        cost: Of all of them.
        size: Of all of them.
        exact: Whether nothing that is large enough costs less. If not, `bound` says how near it is.
        bound: No set that is large enough costs less than this.
    """

    chosen: tuple[int, ...]
    cost: int
    size: int
    exact: bool
    bound: int


def cheapest(items: Sequence[Item], need: int, most_cells: int = MOST_CELLS) -> Cover | None:
    """Return the cheapest set whose sizes add up to at least `need`; None where all together do not.

    Of sets of equal cost the smallest, and of these the same one, whatever the order of `items`. Exact by dynamic
    programming over the size that is reached, O(items x need / gcd of the sizes), up to `most_cells`; beyond that the
    cheapest by cost for each unit of size, without those that are not needed.
    """
    if need <= 0:
        return Cover((), 0, 0, True, 0)
    if sum(item.size for item in items) < need:
        return None
    kept = _worth_a_look(items, need)
    unit = math.gcd(*(items[i].size for i in kept))
    steps = -(-need // unit)
    width = steps + max(items[i].size for i in kept) // unit
    if len(kept) * width > most_cells or sum(items[i].cost for i in kept) > _MOST_COST:
        return _greedy(items, kept, need)
    return _exact(items, kept, steps, width, unit)


def _worth_a_look(items: Sequence[Item], need: int) -> list[int]:
    """Of things of one size only the cheapest: of no size more are needed than reach `need` by themselves."""
    sizes: defaultdict[int, list[int]] = defaultdict(list)
    for i, item in enumerate(items):
        sizes[item.size].append(i)
    kept: list[int] = []
    for size, of_size in sizes.items():
        of_size.sort(key=lambda i: (items[i].cost, items[i].name))
        kept += of_size[: -(-need // size)]
    return sorted(kept, key=lambda i: (items[i].name, items[i]))


def _exact(items: Sequence[Item], kept: list[int], steps: int, width: int, unit: int) -> Cover:
    import numpy as np

    never = np.int64(2**62)
    best = np.full(width, never, np.int64)  # the least cost of a set of just this size
    best[0] = 0
    taken = np.zeros((len(kept), width), np.bool_)
    for row, i in enumerate(kept):
        size = items[i].size // unit
        with_it = best[: width - size] + items[i].cost
        better = with_it < best[size:]
        taken[row, size:] = better
        best[size:] = np.where(better, with_it, best[size:])
    at = steps + int(np.argmin(best[steps:]))  # of equal costs the first: the smallest size
    cost, size, chosen = int(best[at]), at * unit, []
    for row in range(len(kept) - 1, -1, -1):
        if taken[row, at]:
            chosen.append(kept[row])
            at -= items[kept[row]].size // unit
    return Cover(tuple(sorted(chosen)), cost, size, True, cost)


def _greedy(items: Sequence[Item], kept: list[int], need: int) -> Cover:
    by_price = sorted(kept, key=lambda i: (items[i].cost / items[i].size, items[i].name, items[i]))
    chosen, size, bound = [], 0, 0
    for i in by_price:
        rest = need - size
        if rest <= 0:
            break
        # What a part of the last one would do costs no more than any set: sets cannot divide it.
        bound += items[i].cost if items[i].size <= rest else items[i].cost * rest // items[i].size
        chosen.append(i)
        size += items[i].size
    for i in sorted(chosen, key=lambda i: (-items[i].cost, items[i].name, items[i])):
        if size - items[i].size >= need:
            chosen.remove(i)
            size -= items[i].size
    return Cover(tuple(sorted(chosen)), sum(items[i].cost for i in chosen), size, False, bound)
