"""Two ways of doing the same, measured in turns in one run: what differs is theirs, not the machine's mood."""

import gc
import time
from array import array
from collections.abc import Callable
from statistics import median


def quantile(values: list[float], q: float) -> float:
    """Return the smallest value that at least the part `q` of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def each_call(call: Callable[[], object], count: int) -> list[float]:
    """Time `count` calls one by one, in µs; the price of reading the clock is in each.

    What is measured is not kept as objects: they would take the memory that the call uses, and their page faults
    would be counted as the call's.
    """
    clock = time.perf_counter_ns
    taken = array("q", bytes(8 * count))
    for number in range(count):
        begun = clock()
        call()
        taken[number] = clock() - begun
    return [value / 1000 for value in taken]


def in_turns(
    bare: Callable[[], list[float]], other: Callable[[], list[float]], rounds: int
) -> tuple[list[list[float]], list[list[float]]]:
    """Run both `rounds` times in turns, each first as often as the other; return what each round gave."""
    one: list[list[float]] = []
    two: list[list[float]] = []
    gc.collect()
    gc.freeze()
    for number in range(rounds):
        if number % 2:
            two.append(other())
            one.append(bare())
        else:
            one.append(bare())
            two.append(other())
    return one, two


def extra_at(q: float, bare: list[list[float]], other: list[list[float]]) -> float:
    """Return by how much the quantile of the other is larger: the median over the rounds of the difference."""
    return median(quantile(b, q) - quantile(a, q) for a, b in zip(bare, other, strict=True))
