"""Rule 7: the time between attempts, before the first, and after one that waits for a retry."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ettwatch_core.attempts import Bounds, begun_after
from ettwatch_core.charge import Piece, charge, free_pieces
from ettwatch_core.groups import RawSpan
from ettwatch_core.line import join
from ettwatch_core.spans import Closed, Cluster, merge
from ettwatch_core.tally import Tally, tally_of

__all__ = ["Gap", "close_waits", "fill_gap"]


class Gap(NamedTuple):
    """Time outside attempts; it carries number and GPUs of the attempt before it."""

    attempt: int
    gpus: int
    start: int
    end: int
    pieces: list[Piece]
    clusters: list[Cluster]

    def tally(self) -> Tally:
        """Return its sums."""
        return tally_of(self.pieces, self.clusters, self.gpus)


def close_waits(waits: Iterable[RawSpan], bounds: Sequence[Bounds], until: int) -> list[Closed]:
    """Decide where ``scheduling`` spans end that are not of their attempt's own time.

    One without a told end reaches to its attempt's start, or to ``until``; one begun in its attempt ends there.
    """
    own = {b.group.number: b for b in bounds}
    closed = []
    for raw in waits:
        if raw.background or raw.negative:
            continue
        b = own.get(raw.attempt)
        if raw.end is not None:
            end = raw.end
        elif b is None or begun_after(raw, b):
            end = until
        else:
            end = b.start
        closed.append(Closed(raw.start, max(raw.start, end), raw, raw.end is None))
    return closed


def fill_gap(attempt: int, gpus: int, start: int, end: int, waits: Sequence[Closed]) -> Gap:
    """Charge a gap to the ``scheduling`` spans open in it, else to ``scheduling``.

    Which of several is charged follows from where they begin and end as told; they are drawn cut to the gap.
    """
    inside = [
        span for span in waits if min(span.end, end) > max(span.start, start) or start < span.start == span.end < end
    ]
    clusters = merge(inside)
    pieces = charge(clusters, (start, end))
    for cluster in clusters:
        cluster.start, cluster.end = max(cluster.start, start), min(cluster.end, end)
        cluster.parts = [s._replace(start=max(s.start, start), end=min(s.end, end)) for s in cluster.parts]
    rest = [(s, e, "scheduling") for s, e in free_pieces(pieces, start, end)]
    return Gap(attempt, gpus, start, end, join([*pieces, *rest]), clusters)
