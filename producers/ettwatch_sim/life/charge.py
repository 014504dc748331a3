"""Which of several open phases a moment is charged to: the sum that a simulated attempt knows of itself.

It follows the published rules of attribution, by itself: tests hold it against what the pipeline says.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Piece(NamedTuple):
    """A stretch of time (µs) and its stage."""

    start: int
    end: int
    stage: str


class Span(NamedTuple):
    """A phase of an attempt, as the last of its ranks sees it.

    Attributes:
        phase: Its name.
        start: µs.
        end: µs; after `start`.
        parent: The phase that it is part of.
        lag: By how much (µs) the slow host is behind the others; 0 where all are alike.
        source: Who tells it.
    """

    phase: str
    start: int
    end: int
    parent: str | None = None
    lag: int = 0
    source: str = "trainer"


def charge(spans: Sequence[Span], start: int, end: int, boot: int) -> list[Piece]:
    """Charge each moment from `start` to `end` to one stage; spans lie within.

    Of the spans without parts the one that ends last is charged (of equal ends the later start, then the smaller
    name), else the container that began last; where none is open it is
    the set-up of the hardware before `boot`, the start of the trainer after it.
    """
    containers = {span.parent for span in spans}
    cuts = sorted({start, end, boot, *(t for span in spans for t in span[1:3])})
    pieces: list[Piece] = []
    for a, b in pairwise(cuts):
        if a < start or b > end:
            continue
        leaf = outer = None
        for span in spans:
            if span.start <= a and span.end >= b:
                if span.phase in containers:
                    if outer is None or span.start > outer.start:
                        outer = span
                elif leaf is None or (-span.end, -span.start, span.phase) < (-leaf.end, -leaf.start, leaf.phase):
                    leaf = span
        found = leaf or outer
        stage = found.phase if found else "hardware_setup" if a < boot else "trainer_init"
        if pieces and pieces[-1].stage == stage:
            pieces[-1] = Piece(pieces[-1].start, b, stage)
        else:
            pieces.append(Piece(a, b, stage))
    return pieces


def add(stages: dict[str, int], pieces: Iterable[Piece]) -> None:
    """Add pieces to sums by stage (µs)."""
    for start, end, stage in pieces:
        stages[stage] = stages.get(stage, 0) + end - start
