"""Segments cut at whole hours, as they are stored."""

from collections.abc import Iterable

from ettwatch_core.rules import CELL
from ettwatch_schemas import Segment

__all__ = ["cells"]


def cells(segments: Iterable[Segment]) -> dict[int, list[Segment]]:
    """Sort segments into hours (UTC), cutting those that cross one. Keys are the hours' starts (µs)."""
    out: dict[int, list[Segment]] = {}
    for segment in segments:
        start = segment.start
        while start < segment.end:
            cell = start // CELL * CELL
            end = min(segment.end, cell + CELL)
            out.setdefault(cell, []).append(segment._replace(start=start, end=end))
            start = end
    return out
