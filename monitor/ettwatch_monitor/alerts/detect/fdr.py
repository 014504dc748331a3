"""The rate of false discoveries over all tests of a round, each with its weight."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

__all__ = ["discoveries"]


def discoveries(
    p_values: Sequence[float],
    weights: Sequence[float],
    rate: float,
    dependence: Literal["positive", "any"] = "positive",
) -> list[bool]:
    """Return which tests are discoveries, so that at most `rate` of them are false on average.

    The step-up procedure of Benjamini and Hochberg (1995) on p / weight, with weights of mean 1 (Genovese, Roeder and
    Wasserman 2006). It holds for tests that move together; with `any` the rate is divided by 1 + 1/2 + … + 1/n
    (Benjamini and Yekutieli 2001), and it holds for all.

    Args:
        p_values: One of each test.
        weights: How much of the error each test may spend, in relation to the others; above 0.
        rate: Of false among all discoveries.
        dependence: What is assumed of the tests.
    """
    number = len(p_values)
    if not number:
        return []
    shares = np.asarray(weights, dtype=np.float64)
    weighted = np.asarray(p_values, dtype=np.float64) / (shares / shares.mean())
    order = np.argsort(weighted, kind="stable")
    if dependence == "any":
        rate = rate / float((1 / np.arange(1, number + 1)).sum())
    passed = np.flatnonzero(weighted[order] <= rate * np.arange(1, number + 1) / number)
    found = np.zeros(number, dtype=bool)
    if len(passed):
        found[order[: passed[-1] + 1]] = True
    return [bool(one) for one in found]
