"""Rule 3 and the first half of rule 5: spans with their ends, and spans of one phase made one."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ettwatch_core.attempts import Bounds
from ettwatch_core.groups import RawSpan
from ettwatch_core.loop import Loop
from ettwatch_schemas import component_of

__all__ = ["Closed", "Cluster", "apart", "close_spans", "first_batch", "merge"]


class Closed(NamedTuple):
    """A span with its end decided, within its attempt."""

    start: int
    end: int
    raw: RawSpan
    open: bool
    """No end was told."""


@dataclass(slots=True, eq=False)
class Cluster:
    """Spans of one phase, of any rank, that overlap or touch: one phase from the earliest start to the latest end."""

    phase: str
    start: int
    end: int
    parts: list[Closed] = field(default_factory=list)
    container: bool = False
    charged: int = 0


def close_spans(b: Bounds, spans: Iterable[RawSpan], loop: Loop | None) -> list[Closed]:
    """Decide where spans of an attempt end; leave out what began after it and what ends before it starts."""
    closed = []
    advances = [cut[0] for cut in loop.cuts if cut[1]] if loop is not None else []
    for raw in spans:
        if raw.start > b.end or raw.negative:
            continue
        start = max(raw.start, b.start)
        if raw.end is not None:
            end = raw.end
        elif component_of(raw.phase) == "scheduling" and raw.start < b.start:
            end = b.start
        elif raw.background or loop is None or not loop.trains or start >= loop.end:
            end = b.end
        elif start < loop.start:
            end = loop.start
        else:
            i = bisect_right(advances, start)
            end = advances[i] if i < len(advances) else loop.end
        closed.append(Closed(start, max(start, min(end, b.end)), raw, raw.end is None))
    return closed


def first_batch(loop: Loop, closed: Iterable[Closed]) -> int:
    """Rule 4: the start of the loop, or the end of a compilation that delays the first advance."""
    assert loop.first_advance is not None
    if loop.resumed is not None:
        return loop.resumed.first_batch
    end = loop.start
    for span in closed:
        if (
            not span.raw.background
            and span.start < loop.first_advance
            and span.end > end
            and component_of(span.raw.phase) == "pt2_compilation"
        ):
            end = min(span.end, loop.first_advance)
    return end


def merge(closed: Sequence[Closed]) -> list[Cluster]:
    """Make spans of one phase that overlap or touch one, and mark the containers. Sorted by start."""
    clusters: list[Cluster] = []
    by_phase: dict[str, list[Cluster]] = {}
    parents = {(s.raw.attempt, s.raw.rank, s.raw.parent) for s in closed if s.raw.parent is not None}
    for span in sorted(closed, key=lambda s: (s.start, s.end, s.raw.rank, s.raw.span)):
        rows = by_phase.setdefault(span.raw.phase, [])
        if rows and span.start <= rows[-1].end:
            last = rows[-1]
            last.end = max(last.end, span.end)
        else:
            last = Cluster(span.raw.phase, span.start, span.end)
            rows.append(last)
            clusters.append(last)
        last.parts.append(span)
        if parents and (span.raw.attempt, span.raw.rank, span.raw.span) in parents:
            last.container = True
    _mark_prefixes(by_phase)
    return clusters


def apart(closed: Iterable[Closed]) -> list[Cluster]:
    """Return each span by itself: background spans are drawn as they were told."""
    return [Cluster(span.raw.phase, span.start, span.end, [span]) for span in closed]


def _mark_prefixes(by_phase: dict[str, list[Cluster]]) -> None:
    """A span whose name is a dotted prefix of that of a span that overlaps it is a container."""
    for phase, rows in by_phase.items():
        dot = phase.rfind(".")
        while dot > 0:
            outer = by_phase.get(phase[:dot])
            if outer:
                ends = [c.end for c in outer]
                starts = [c.start for c in outer]
                for row in rows:
                    if row.end > row.start:
                        for i in range(bisect_right(ends, row.start), bisect_left(starts, row.end)):
                            outer[i].container = True
            dot = phase.rfind(".", 0, dot)
