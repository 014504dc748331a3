"""Chance: one random source for each thing, so that nothing that is switched on or off moves the dice of another."""

from hashlib import blake2b
from math import exp
from random import Random
from typing import Final

US: Final = 1_000_000
HOUR: Final = 3_600 * US
DAY: Final = 24 * HOUR


def number(*parts: object) -> int:
    """Return a number of 64 bits that follows from `parts`."""
    return int.from_bytes(blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest(), "big")


def fraction(*parts: object) -> float:
    """Return a number from 0 to 1, without 1, that follows from `parts`."""
    return (number(*parts) >> 11) / 2**53


def dice(*parts: object) -> Random:
    """Return a random source that follows from `parts`."""
    return Random(number(*parts))


_quantiles = Random(2_026)
SPREAD: Final = tuple(exp(_quantiles.gauss(0, 0.15)) for _ in range(251))
"""Factors around 1 for what happens hundreds of times in an attempt, where a draw for each would take too long."""
