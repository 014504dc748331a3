"""Stage 1: the sums of one partition of the jobs. Takes what workers publish, keeps signed sums by group. Pure.

A job's part of the sums is known at any time from what it told last. So a message changes the sums by the difference
between what the job added before and what it adds now: however late it comes, and however often.
"""

from typing import Final

from ettwatch_core.ownership import Owners
from ettwatch_core.windows.amounts import Buckets, add, pack, unpack
from ettwatch_core.windows.cells import Cell, Standing, amounts_of, coarser_cell, live_of, squeeze
from ettwatch_core.windows.dims import Group
from ettwatch_core.windows.jobs import Job, by_hour, marks_at
from ettwatch_core.windows.parts import Part, Places
from ettwatch_core.windows.sizes import HOUR, MINUTE_US, Sizes
from ettwatch_core.windows.sums import Sums
from ettwatch_schemas import AttemptsUpdate, JobSummary, SegmentsUpdate

__all__ = ["Source"]

_DONE: Final = ("succeeded", "failed", "cancelled")
"""Lost jobs are not done: they may come back for a month."""

_WARM: Final = 2
"""Hours that are kept unpacked."""


class Source:
    """The jobs of one partition, and their sums. Told the time, in minutes since the Unix epoch.

    Args:
        sizes: The windows.
        now: The clock.
        owners: Who owns which stage.
    """

    def __init__(self, sizes: Sizes, now: int, owners: Owners) -> None:
        self.sizes = sizes
        self.clock = now // HOUR * HOUR
        """Scope this time the hours have their buckets: a whole hour. Only `turn` moves it."""
        self.jobs: dict[str, Job] = {}
        self.gone: dict[str, tuple[int, int]] = {}
        """Jobs that left memory: their last version, and the hour from which on nothing of them is in a window."""
        self.sums = Sums(sizes, owners)
        self.refused = 0
        """Messages that would have changed a job that left memory."""

    # What workers tell

    def summary(self, summary: JobSummary, now: int) -> None:
        """Take the summary of a job: where it counts."""
        job = self._job(summary.job, summary.version, now)
        if job is None or summary.version < job.version:
            return
        job.version, job.closed = summary.version, summary.status in _DONE
        group = Group(summary.team or "", summary.model or "", summary.cluster or "")
        if group == job.group:
            return
        whole = self._whole(job) if job.cells or job.attempts else {}
        if job.group is not None:
            self._apply(job.group, whole, {})
        job.group = group
        self._apply(group, {}, whole)

    def segments(self, update: SegmentsUpdate, now: int) -> None:
        """Take hours of a job."""
        job = self._job(update.job, update.version, now)
        if job is None:
            return
        standing = job.standing()
        for hour, version, columns in job.hear_hours(update):
            minutes = self.sizes.resolution(hour, self.clock)
            if minutes is None:
                continue
            held = job.cells.get(hour)
            before = None if held is None else _cell(held[1])
            after = squeeze(columns, minutes)
            job.cells[hour] = version, after
            if job.group is not None and before != after:
                old, new = _differing(before or Cell(minutes, (), ()), after)
                self._apply(job.group, _adds(hour, old, standing), _adds(hour, new, standing))

    def attempts(self, update: AttemptsUpdate, now: int) -> None:
        """Take attempts of a job."""
        job = self._job(update.job, update.version, now)
        if job is None:
            return
        old = job.standing()
        changed = job.hear_attempts(update)
        if job.group is None or not changed:
            return
        minutes: dict[int, dict[str, int]] = {}
        for before, after in changed.values():
            marks_at(before, -1, minutes)
            marks_at(after, 1, minutes)
        self._apply(job.group, {}, by_hour(minutes))
        new = job.standing()
        if new != old:
            for hour, (_, held) in job.cells.items():
                cell = _cell(held)
                self._apply(job.group, {hour: live_of(hour, cell, old)}, {hour: live_of(hour, cell, new)})

    def _job(self, name: str, version: int, now: int) -> Job | None:
        left = self.gone.get(name)
        if left is not None:
            self.refused += version > left[0]
            return None
        job = self.jobs.get(name)
        if job is None:
            job = self.jobs[name] = Job.fresh()
        job.heard = max(job.heard, now)
        return job

    # Sums

    def _whole(self, job: Job) -> dict[int, Buckets]:
        """Return all that a job adds."""
        standing = job.standing()
        minutes: dict[int, dict[str, int]] = {}
        for told in job.attempts.values():
            marks_at(told.mark, 1, minutes)
        out = by_hour(minutes)
        for hour, (_, held) in job.cells.items():
            cell = _cell(held)
            out[hour] = _merged(self.sums.fitting(out.get(hour, {}), cell.minutes), _adds(hour, cell, standing)[hour])
        return out

    def _apply(self, group: Group, before: dict[int, Buckets], after: dict[int, Buckets]) -> None:
        for hour in before.keys() | after.keys():
            minutes = self.sizes.resolution(hour, self.clock)
            if minutes is not None:
                self.sums.change(group, hour, minutes, before.get(hour, {}), after.get(hour, {}))

    # Time

    def turn(self, now: int) -> None:
        """Take note of the time: hours that are long ago get longer buckets, and at last leave memory."""
        before, clock = self.clock, now // HOUR * HOUR
        if clock <= before:
            return
        self.clock = clock
        warm = clock // HOUR - _WARM
        self.sums.turn(clock, warm)
        for job in self.jobs.values():
            self._turn_cells(job, before, warm)
            self._turn_attempts(job)

    def forget(self, now: int) -> None:
        """Let go of jobs of which nothing more is to come. To be called when all is read that is there."""
        for name, job in list(self.jobs.items()):
            quiet = now - job.heard
            if job.closed and quiet > self.sizes.correct:
                newest = max([job.version, *(version for version, _ in job.cells.values())])
                last = max(job.cells, default=self.clock // HOUR)
                self.gone[name] = newest, last + self._reach // HOUR + 2
                del self.jobs[name]
            elif not job.cells and quiet > self._reach:
                del self.jobs[name]
        self.gone = {name: left for name, left in self.gone.items() if left[1] > self.clock // HOUR}

    def _turn_cells(self, job: Job, before: int, warm: int) -> None:
        for hour, (version, held) in list(job.cells.items()):
            minutes = self.sizes.resolution(hour, self.clock)
            if minutes is None:
                del job.cells[hour]
                continue
            same = minutes == self.sizes.resolution(hour, before)
            cell = held if same else coarser_cell(_cell(held), minutes)
            job.cells[hour] = version, pack_cell(cell) if isinstance(cell, Cell) and hour < warm else cell

    def _turn_attempts(self, job: Job) -> None:
        """Let go of failures that are in no window any more. The first attempt stays: it says what a start is."""
        oldest, first = (self.clock - self._reach - HOUR) * MINUTE_US, job.standing().first
        for number, told in list(job.attempts.items()):
            mark = told.mark
            if mark is not None and mark.failure and max(mark.end, mark.batch or 0) < oldest and number != first:
                del job.attempts[number]

    @property
    def _reach(self) -> int:
        """Minutes after which an hour is in no window any more."""
        return self.sizes.correct + max(size.length for size in self.sizes.all)

    # Telling

    def dirty(self) -> Places:
        """Return the buckets that changed since they were told, and take them for told."""
        return self.sums.dirty()

    def redo(self, places: Places) -> None:
        """Have buckets told again: an owner before may have told them otherwise."""
        self.sums.redo(places)

    def tell(self, places: Places) -> list[Part]:
        """Return the buckets as they are now."""
        return self.sums.tell(places, self.clock)

    def own(self, owners: Owners) -> None:
        """Have stages owned by others from now on: what is lost is told anew by owner."""
        self.sums.own(owners)


def pack_cell(cell: Cell) -> bytes:
    """Return a cell in a small space."""
    return pack([cell.minutes, cell.runs, cell.stands])


def unpack_cell(data: bytes) -> Cell:
    """Return a cell that was packed."""
    minutes, runs, stands = unpack(data)
    return Cell(minutes, tuple(tuple(run) for run in runs), tuple(tuple(stand) for stand in stands))


def _cell(held: Cell | bytes) -> Cell:
    return unpack_cell(held) if isinstance(held, bytes) else held


def _differing(one: Cell, other: Cell) -> tuple[Cell, Cell]:
    """Return two cells without the time that they share: of an hour that goes on that is most."""
    old, new = set(one.runs), set(other.runs)
    return one._replace(runs=tuple(old - new)), other._replace(runs=tuple(new - old))


def _adds(hour: int, cell: Cell, standing: Standing) -> dict[int, Buckets]:
    return {hour: _merged(amounts_of(cell), live_of(hour, cell, standing))}


def _merged(one: Buckets, other: Buckets) -> Buckets:
    for at, amounts in other.items():
        add(one.setdefault(at, {}), amounts)
    return one
