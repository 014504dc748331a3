"""From the records of a job to its whole timeline, at a given time."""

from dataclasses import dataclass, field
from itertools import pairwise

from ettwatch_core.attempts import Bounds, find_bounds, infer_end, job_end
from ettwatch_core.groups import Group, Grouped, group
from ettwatch_core.line import Line, draw
from ettwatch_core.ranges import Ranges
from ettwatch_core.records import Record, content_key
from ettwatch_core.rules import Rules
from ettwatch_core.state import JobState
from ettwatch_core.waiting import Gap, close_waits, fill_gap

__all__ = ["Timeline", "lay_out"]


@dataclass(slots=True)
class Timeline:
    """A job's time from T0 (or from where the settled part ends) to T1: lines of attempts, and gaps."""

    t0: int
    t1: int
    now: int
    status: str
    submit: Record | None
    groups: list[Group]
    lines: list[Line]
    gaps: list[Gap]
    durables: list[tuple[int, int]]
    """Time and position of durable checkpoints, in time order."""
    old_zombies: bool
    """Attempts that are settled and over still spoke."""
    flags: set[str] = field(default_factory=set)

    def gpus_of(self, b: Bounds) -> int:
        """Return the GPUs of an attempt: its own, else the job's, else 1."""
        return b.gpus if b.gpus is not None else self.job_gpus

    @property
    def job_gpus(self) -> int:
        """Return the GPUs that the job asked for, else 1."""
        return self.submit[7] if self.submit is not None and self.submit[7] is not None else 1


def lay_out(state: JobState, rules: Rules, now: int | None = None) -> Timeline:
    """Lay out the unsettled part of a job.

    Args:
        state: Not changed.
        rules: Settings.
        now: The clock (µs); never before the newest event of the job, which is also the default.
    """
    carry = state.carry
    now = state.newest if now is None else max(now, state.newest)
    grouped = group(state.records.values())
    groups, old = _without_settled(grouped, None if carry is None else carry.fixed.number)
    submit = _earliest(grouped.submits, None if carry is None else carry.submit)
    ended = job_end(grouped.job_ends, groups, None if carry is None else carry.told_floor)
    bounds = find_bounds(groups, ended, now, None if carry is None else carry.fixed)
    last = bounds[-1] if bounds else None

    quiet = now - state.newest
    lost = last is not None and last.open and quiet >= rules.lost_after
    if last is not None and lost:
        infer_end(last)
    given_up = last is not None and ended is None and not lost and last.failed and quiet >= rules.retry_after

    t0 = carry.t0 if carry is not None else _t0(submit, bounds, state)
    t1 = max(t0, _t1(last, ended, now, lost or given_up))

    passed = Ranges() if carry is None else carry.passed.copy()
    lines = []
    for i, b in enumerate(bounds):
        if i == 0 and carry is not None:
            lines.append(draw(b, rules, passed, carry.mark, carry.until))
        else:
            lines.append(draw(b, rules, passed))

    timeline = Timeline(
        t0=t0,
        t1=t1,
        now=now,
        status=_status(lines, ended, lost, given_up, quiet, rules, carry is not None),
        submit=submit,
        groups=grouped.groups,
        lines=lines,
        gaps=[],
        durables=_durables(bounds, [] if carry is None else carry.durables),
        old_zombies=old,
    )
    drawn = {b.group.number for b in bounds}
    if any(w.negative for g in grouped.groups if g.number not in drawn for w in g.waits):
        timeline.flags.add("negative_span")
    _fill_gaps(timeline, grouped, carry is not None, lost)
    return timeline


def _without_settled(grouped: Grouped, current: int | None) -> tuple[list[Group], bool]:
    """Leave out attempts that are settled and over; tell whether one of them still spoke."""
    if current is None:
        return grouped.groups, False
    old = [g for g in grouped.groups if g.number < current]
    live = [g for g in grouped.groups if g.number >= current]
    if not live or live[0].number != current:
        live.insert(0, Group(current))
    return live, any(True for g in old for _ in g.own_times())


def _earliest(submits: list[Record], settled: Record | None) -> Record | None:
    if settled is not None:
        return settled
    return min(submits, key=lambda rec: (rec[1], content_key(rec)), default=None)


def _t0(submit: Record | None, bounds: list[Bounds], state: JobState) -> int:
    first = bounds[0].start if bounds else None
    if submit is not None:
        told: int = submit[8] if submit[8] is not None else submit[1]
        return told if first is None else min(told, first)
    if first is not None:
        return first
    return min((rec[1] for rec in state.records.values()), default=0)


def _t1(last: Bounds | None, ended: Record | None, now: int, closed: bool) -> int:
    if ended is not None:
        return max(ended[1], last.end) if last is not None else int(ended[1])
    if last is None:
        return now
    return now if last.failed and not closed else last.end


def _status(
    lines: list[Line],
    ended: Record | None,
    lost: bool,
    given_up: bool,
    quiet: int,
    rules: Rules,
    resumed: bool,
) -> str:
    if ended is not None:
        return "failed" if ended[4] == "preempted" else str(ended[4])
    if lost:
        return "lost"
    if not lines:
        return "pending"
    b = lines[-1].bounds
    if b.open:
        if quiet >= rules.silent_after:
            return "silent"
        if lines[-1].loop is not None:
            return "training"
        return "recovering" if resumed or len(lines) > 1 else "starting"
    if b.failed:
        return "failed" if given_up else "recovering"
    return str(b.outcome)


def _durables(bounds: list[Bounds], settled: list[tuple[int, int]]) -> list[tuple[int, int]]:
    told = [(rec[1], rec[4]) for b in bounds for rec in b.group.durables if rec[1] <= b.end]
    return sorted([*settled, *told])


def _fill_gaps(timeline: Timeline, grouped: Grouped, resumed: bool, lost: bool) -> None:
    lines, gaps = timeline.lines, timeline.gaps
    bounds = [line.bounds for line in lines]
    waits = close_waits((w for g in grouped.groups for w in g.waits), bounds, timeline.t1)
    if not bounds:
        gaps.append(fill_gap(0, timeline.job_gpus, timeline.t0, timeline.t1, waits))
        return
    if not resumed:
        b = bounds[0]
        gaps.append(fill_gap(b.group.number, timeline.gpus_of(b), timeline.t0, b.start, waits))
    for b, after in pairwise(bounds):
        gaps.append(fill_gap(b.group.number, timeline.gpus_of(b), b.end, after.start, waits))
    b = bounds[-1]
    number, gpus = b.group.number, timeline.gpus_of(b)
    if b.failed and not lost:
        gaps.append(fill_gap(number, gpus, b.end, timeline.t1, waits))
    elif timeline.t1 > b.end:
        gaps.append(Gap(number, gpus, b.end, timeline.t1, [(b.end, timeline.t1, "shutdown")], []))
