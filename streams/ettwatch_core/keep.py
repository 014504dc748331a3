"""Which records a job still needs behind a cut."""

from ettwatch_core import records as r
from ettwatch_core.attempts import begun_after
from ettwatch_core.carry import Carry
from ettwatch_core.cut import Place
from ettwatch_core.groups import RawSpan
from ettwatch_core.records import Record
from ettwatch_core.timeline import Timeline
from ettwatch_schemas import component_of

__all__ = ["Keep"]


class Keep:
    """Decides which records stay after a cut."""

    def __init__(self, timeline: Timeline, place: Place, horizon: int, lateness: int) -> None:
        line = timeline.lines[place.line]
        self.current = line.bounds.group.number
        self.in_loop = place.cut is not None
        self.until = place.until
        self.long_ago = horizon - lateness
        self.begun = line.bounds.start
        self.over = {done.bounds.group.number: done.bounds for done in timeline.lines[: place.line]}
        self.dropped: set[tuple[int, int, str]] = set()
        """Spans that are over."""
        self.waits: set[tuple[int, int, str]] = set()
        self.started: set[tuple[int, int, str]] = set()
        for group in timeline.groups:
            for raw in (*group.spans, *group.waits):
                key = (group.number, raw.rank, raw.span)
                self.started.add(key)
                if component_of(raw.phase) == "scheduling":
                    self.waits.add(key)
                    over = self._wait_over(raw)
                else:
                    over = self._span_over(raw)
                if over:
                    self.dropped.add(key)

    def _wait_over(self, raw: RawSpan) -> bool:
        """Tell whether a wait for hardware can matter no more. It may lie outside its attempt."""
        if raw.attempt > self.current:
            return False
        if raw.attempt < self.current:
            if raw.end is None:
                own = self.over.get(raw.attempt)
                return own is not None and not begun_after(raw, own)
            return raw.end < self.until
        border = self.until - 1 if self.in_loop else self.begun
        return raw.end is not None and raw.start <= raw.end <= border

    def _span_over(self, raw: RawSpan) -> bool:
        if raw.attempt != self.current:
            return raw.attempt < self.current
        if not self.in_loop:
            return False
        if raw.background:
            return raw.end is not None and raw.end < self.until
        return max(raw.start, self.begun) < self.until

    def __call__(self, rec: Record) -> bool:
        """Tell whether a record stays."""
        kind, ts, number = rec[0], rec[1], rec[2]
        if number < 0:
            return bool(kind == r.JOB_END or ts >= self.until)
        if kind in (r.PHASE_START, r.PHASE_END):
            key = (number, rec[3], rec[4])
            if key in self.dropped:  # its end, told behind the cut, is still a sign of life
                return bool(kind == r.PHASE_END and number == self.current and ts > self.until)
            if key in self.started:
                return True
            return bool(number >= self.current and (ts >= self.until or ts >= self.long_ago))
        if number != self.current:
            return bool(number > self.current)
        return not self.in_loop or kind == r.ATTEMPT_END or ts > self.until

    def sort_out(self, records: dict[str | int, Record], carry: Carry) -> dict[str | int, Record]:
        """Return the records that stay; flag what goes with them from attempts that were over."""
        if any(self.zombie(rec) for rec in records.values()):
            carry.flags.add("zombie")
        return {key: rec for key, rec in records.items() if self(rec)}

    def zombie(self, rec: Record) -> bool:
        """Tell whether a record is told after the cut by an attempt that was over before it."""
        if rec[2] < 0 or rec[2] >= self.current or rec[1] <= self.until or rec[0] == r.ATTEMPT_END:
            return False
        return (rec[2], rec[3], rec[4] if len(rec) > 4 else "") not in self.waits
