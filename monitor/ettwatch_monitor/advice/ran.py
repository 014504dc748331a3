"""What a loop that is laid out anew is given, and what comes of it."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Rhythm(NamedTuple):
    """Pauses that come again and again: free running between them, and how long one takes (µs)."""

    every: int
    length: int


class Saves(NamedTuple):
    """How saving is other: another interval (µs) or the observed one, and the share of a save that still blocks."""

    every: int | None
    blocking: float


@dataclass(slots=True)
class Ran:
    """A loop as it would be. Times since the epoch (µs), positions absolute.

    Attributes:
        pauses: Stage, start, end; some take no time.
        reports: Time, position, waited.
        durables: Time, position.
        end: When it stopped: at its failure, or with its work done.
        reached: The last position.
        done: Whether it reached its target before it was stopped.
    """

    pauses: list[tuple[str, int, int]] = field(default_factory=list)
    reports: list[tuple[int, int, int]] = field(default_factory=list)
    durables: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0
    reached: int = 0
    done: bool = False
