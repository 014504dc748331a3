"""One attempt's line: its loop, its phases, and every instant of it charged once (rules 2 to 6)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ettwatch_core.attempts import Bounds, begun_after
from ettwatch_core.charge import Piece, charge, free_pieces
from ettwatch_core.gaps import Spent, charge_gaps
from ettwatch_core.loop import Loop, LoopMark, find_loop
from ettwatch_core.ranges import Ranges
from ettwatch_core.rules import Rules
from ettwatch_core.spans import Closed, Cluster, apart, close_spans, first_batch, merge
from ettwatch_core.tally import Tally, tally_of
from ettwatch_schemas import component_of

__all__ = ["Line", "draw", "join"]


@dataclass(slots=True)
class Line:
    """A drawn attempt."""

    bounds: Bounds
    loop: Loop | None
    """Only if the attempt trains."""
    first_batch: int | None
    pieces: list[Piece]
    """Disjoint and gapless from ``since`` to the attempt's end."""
    clusters: list[Cluster]
    background: list[Cluster]
    spent: list[Spent]
    start_position: int | None
    """Where it started from, if it came so far (also without an advance)."""
    since: int
    flags: set[str] = field(default_factory=set)

    @property
    def interruption(self) -> int:
        """Return where recovery begins: the last advance, if it failed in its loop, else its end (µs)."""
        loop = self.loop
        if self.bounds.failed and loop is not None and not loop.ended and loop.last_advance is not None:
            return loop.last_advance
        return self.bounds.end

    def tally(self, gpus: int) -> Tally:
        """Return its sums (of the unsettled part)."""
        return tally_of(self.pieces, self.clusters, gpus)


def draw(b: Bounds, rules: Rules, passed: Ranges, mark: LoopMark | None = None, since: int | None = None) -> Line:
    """Draw an attempt, or what follows the settled part of it.

    Args:
        b: Where it starts and ends, and its records.
        rules: Settings.
        passed: Positions passed by earlier gaps of the job; those of this attempt are added.
        mark: Where the settled part of its loop stands.
        since: End of the settled part (µs); the attempt's start where nothing is settled.
    """
    begin = b.start if since is None else since
    loop = find_loop(b, rules, mark, begin)
    would_start = None if loop is None else loop.start
    start_position = None if loop is None else loop.start_position
    flags = set() if loop is None else set(loop.flags)
    if b.inferred:
        flags.add("inferred_end")
    flags |= _odd_events(b)

    closed = close_spans(b, b.group.spans, loop)
    waits = close_spans(b, b.group.waits, loop)
    closed += [s for s in waits if _inside(s, b)]
    front = [s for s in closed if not s.raw.background]
    batch: int | None = None
    if loop is not None and loop.trains:
        batch = first_batch(loop, front)
        front = [_capped(s, loop.start, batch) for s in front]
        if mark is not None:  # a wait that began before the loop and lasts beyond the attempt is settled up to here
            front = [s for s in front if s.end > begin or s.start >= begin]
    else:
        loop = None
    clusters = merge(front)
    busy = charge(clusters)

    boot_ends = [s.start for s in front if component_of(s.raw.phase) in ("trainer_init", "pt2_compilation")]
    if would_start is not None:
        boot_ends.append(would_start)
    boot = min(min(boot_ends, default=b.end), b.end)
    start_up_end = b.end if batch is None else batch
    pieces = list(busy)
    _fill(pieces, busy, begin, boot, "hardware_setup")
    _fill(pieces, busy, max(begin, boot), start_up_end, "trainer_init")
    spent: list[Spent] = []
    if loop is not None and batch is not None:
        in_loop, spent = charge_gaps(b, loop, max(begin, batch), busy, passed)
        pieces += in_loop
        _fill(pieces, busy, max(begin, loop.end), b.end, "shutdown")
    background = apart(s for s in closed if s.raw.background)
    return Line(b, loop, batch, join(pieces), clusters, background, spent, start_position, begin, flags)


def _inside(wait: Closed, b: Bounds) -> bool:
    """Tell whether a wait reaches into its attempt; others are of the time between attempts."""
    return (wait.end > b.start or wait.raw.start > b.start) and not begun_after(wait.raw, b)


def _capped(span: Closed, loop_start: int, batch: int) -> Closed:
    """Spans begun before the loop end by the first batch: what runs on beside training does not block it."""
    if span.start < loop_start and span.end > batch:
        return span._replace(end=batch)
    return span


def _fill(pieces: list[Piece], busy: Sequence[Piece], start: int, end: int, stage: str) -> None:
    pieces += [(s, e, stage) for s, e in free_pieces(busy, start, end)]


def _odd_events(b: Bounds) -> set[str]:
    """Flag spans that end before they start, and events told after the attempt had ended."""
    group = b.group
    flags = set()
    if any(raw.negative for raw in (*group.spans, *group.waits)):
        flags.add("negative_span")
    if not b.open:
        ends = sorted(rec[1] for rec in group.ends)
        late = sum(1 for ts in group.own_times() if ts > b.end)
        if late > sum(1 for ts in ends if ts > b.end):
            flags.add("zombie")
    return flags


def join(pieces: Iterable[Piece]) -> list[Piece]:
    """Sort pieces and make neighbours of one stage one."""
    out: list[Piece] = []
    stage, start, end = "", 0, -1
    for piece in sorted(pieces):
        if piece[0] == end and piece[2] == stage:
            end = piece[1]
        else:
            if end > start:
                out.append((start, end, stage))
            start, end, stage = piece
    if end > start:
        out.append((start, end, stage))
    return out
