"""Rule 5, a and b: which open phase each instant is charged to."""

from collections.abc import Sequence
from heapq import heappop, heappush

from ettwatch_core.spans import Cluster

__all__ = ["Piece", "charge", "free_pieces"]


Piece = tuple[int, int, str]
"""A stretch of time charged to one stage: start, end (µs), stage. A plain tuple: a job has many."""


def charge(clusters: Sequence[Cluster], within: tuple[int, int] | None = None) -> list[Piece]:
    """Charge the time in which a phase is open; adds to ``charged`` of each cluster.

    Of the phases that are no containers the one that ends last is charged (then the later start, then the smaller
    name); where only containers are open, the one that started last (then the earlier end, then the smaller name).

    Args:
        clusters: Compared whole.
        within: Only this time is charged (µs); all of it by default.
    """
    rows = sorted((c for c in clusters if c.end > c.start), key=lambda c: c.start)
    bounds = sorted({t for c in rows for t in (c.start, c.end)})
    leaves: list[tuple[int, int, str, int, Cluster]] = []
    containers: list[tuple[int, int, str, int, Cluster]] = []
    pieces: list[Piece] = []
    current: Cluster | None = None
    since = 0
    nxt = 0
    for t in bounds:
        while nxt < len(rows) and rows[nxt].start == t:
            c = rows[nxt]
            if c.container:
                heappush(containers, (-c.start, c.end, c.phase, nxt, c))
            else:
                heappush(leaves, (-c.end, -c.start, c.phase, nxt, c))
            nxt += 1
        while leaves and -leaves[0][0] <= t:
            heappop(leaves)
        while containers and containers[0][1] <= t:
            heappop(containers)
        best = leaves[0][4] if leaves else containers[0][4] if containers else None
        if best is not current:
            if current is not None:
                _add(pieces, since, t, current, within)
            current, since = best, t
    return pieces


def _add(pieces: list[Piece], start: int, end: int, cluster: Cluster, within: tuple[int, int] | None) -> None:
    if within is not None:
        start, end = max(start, within[0]), min(end, within[1])
        if start >= end:
            return
    cluster.charged += end - start
    pieces.append((start, end, cluster.phase))


def free_pieces(pieces: Sequence[Piece], start: int, end: int) -> list[tuple[int, int]]:
    """Return the stretches of ``[start, end)`` in which nothing was charged. ``pieces`` are sorted and disjoint."""
    free = []
    at = start
    for busy_from, busy_to, _ in pieces:
        if busy_to <= at:
            continue
        if busy_from >= end:
            break
        if busy_from > at:
            free.append((at, busy_from))
        at = busy_to
    if at < end:
        free.append((at, end))
    return free
