"""Segments without the cuts that storing them made."""

from collections.abc import Iterable

from ettwatch_schemas import Segment

__all__ = ["joined"]


def joined(parts: Iterable[Segment]) -> list[Segment]:
    """Make neighbours one again that differ only in time: whole hours are cut where they become final."""
    whole: list[Segment] = []
    for part in parts:
        last = whole[-1] if whole else None
        if last is not None and last.end == part.start and last[:3] == part[:3] and last.gpus == part.gpus:
            whole[-1] = last._replace(end=part.end)
        else:
            whole.append(part)
    return whole
