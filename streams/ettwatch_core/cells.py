"""Segments cut at whole hours, as they are stored."""

from bisect import bisect_left
from collections.abc import Sequence

from ettwatch_core.rules import CELL
from ettwatch_schemas import Segment

__all__ = ["cells"]


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
