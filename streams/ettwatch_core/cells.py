"""Segments cut at whole hours, as they are stored."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from ettwatch_core.rules import CELL
from ettwatch_schemas import Segment

__all__ = ["Filled", "apart", "cells", "digest_of"]


def cells(segments: Sequence[Segment]) -> dict[int, list[Segment]]:
    """Sort segments into hours (UTC), cutting those that cross one. Keys are the hours' starts (µs).

    Args:
        segments: By time, disjoint, none of no length.
    """
    out: dict[int, list[Segment]] = {}
    at, cell = 0, -CELL
    while at < len(segments):
        cell = max(cell + CELL, segments[at].start // CELL * CELL)
        end = cell + CELL
        # Most segments lie within an hour: only the first and the last one have to be looked at.
        stop = bisect_left(segments, end, at, key=lambda segment: segment.start)
        rows = list(segments[at:stop])
        at = stop
        if rows[-1].end > end:
            rows[-1] = rows[-1]._replace(end=end)
            at -= 1
        if rows[0].start < cell:
            rows[0] = rows[0]._replace(start=cell)
        out[cell] = rows
    return out


class Filled(NamedTuple):
    """Whole hours in a row that one segment fills: begin and end (µs), and the segment."""

    begin: int
    end: int
    segment: Segment

    def hour(self, cell: int) -> list[Segment]:
        """Return the segments of one of the hours, as :func:`cells` would."""
        return [self.segment._replace(start=cell, end=cell + CELL)]


def apart(segments: Sequence[Segment]) -> tuple[Sequence[Segment], list[Filled]]:
    """Take out the whole hours that one segment fills, where it fills several in a row.

    One event of a machine whose clock stood wrong makes a job of decades: its hours must not be cut out one by one each
    time that somebody asks which of them changed.

    Args:
        segments: By time, disjoint.

    Returns:
        What is left, by time, for :func:`cells`; and what was taken out.
    """
    if all(segment.end - segment.start < 2 * CELL for segment in segments):
        return segments, []
    rest: list[Segment] = []
    filled: list[Filled] = []
    for segment in segments:
        begin, end = -(-segment.start // CELL) * CELL, segment.end // CELL * CELL
        if end - begin < 2 * CELL:
            rest.append(segment)
            continue
        filled.append(Filled(begin, end, segment))
        if segment.start < begin:
            rest.append(segment._replace(end=begin))
        if end < segment.end:
            rest.append(segment._replace(start=end))
    return rest, filled


def digest_of(segments: Sequence[Segment]) -> int:
    """Return a digest of the segments of an hour, for this process: the same for all hours that one segment fills."""
    if len(segments) == 1 and segments[0].end - segments[0].start == CELL:
        return hash(segments[0]._replace(start=0, end=CELL))
    return hash(tuple(segments))
