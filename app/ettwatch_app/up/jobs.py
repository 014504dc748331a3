"""The jobs: their fold states, which have changed, and when each has to be looked at again."""

import heapq
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ettwatch_app.up.settings import Limits
from ettwatch_app.up.statefile import JobRow, StateFile
from ettwatch_clickhouse import Writer
from ettwatch_core import (
    CLOSED,
    JobState,
    Pace,
    Rules,
    Settled,
    StateError,
    Verdict,
    apply,
    dump,
    load,
    next_look,
    settle,
    snapshot,
)
from ettwatch_schemas import Event

_SETTLE_EVERY: Final = 500


class Answer(Enum):
    """What became of an event."""

    TAKEN = "taken"
    CONFLICT = "conflict"
    DUPLICATE = "duplicate"
    LATE = "late"
    EXPIRED = "expired"


_ANSWERS: Final = {
    Verdict.ACCEPTED: Answer.TAKEN,
    Verdict.CONFLICT: Answer.CONFLICT,
    Verdict.DUPLICATE: Answer.DUPLICATE,
    Verdict.LATE: Answer.LATE,
}


@dataclass(slots=True)
class _Job:
    state: JobState
    status: str
    due_us: int | None
    arrived_us: int
    unsettled: int = 0
    settled: list[Settled] = field(default_factory=list)


class Jobs:
    """Folds events into the states of their jobs, and publishes what follows from them.

    Args:
        kept: Where the states wait that are not in memory.
        rules: The settings of the fold.
        writer: Where accepted events, snapshots and settled parts go.
        refold: Folds a job's stored events again; for jobs whose state was not kept.
        interval_us: How often a running job is published without events.
        limits: The bounds.
    """

    def __init__(
        self,
        kept: StateFile,
        rules: Rules,
        writer: Writer,
        refold: Callable[[str], JobState],
        *,
        interval_us: int,
        limits: Limits,
    ) -> None:
        self._kept = kept
        self._rules = rules
        self._writer = writer
        self._refold = refold
        self._pace = Pace(rules, interval_us, max(interval_us, limits.queued_us), limits.expire_lost_us)
        self._limits = limits
        self._jobs: dict[str, _Job] = {}  # the least recently used first
        self._changed: dict[str, _Job] = {}  # had events since the last commit
        self._unpublished: dict[str, _Job] = {}  # ... and since the last snapshot
        self._dropped: dict[str, str] = {}
        self._due: list[tuple[int, str]] = []
        self._due_at: dict[str, int] = {}
        self.statuses: Counter[str] = Counter(kept.statuses())
        for job, due_us, _ in kept.schedule():
            self._schedule(job, due_us)

    def clock_went_back(self, now_us: int) -> None:
        """Look at all jobs again that are not over: until now, a wrong clock said how they stand and when to look.

        Args:
            now_us: The time as the clock has it now.
        """
        statuses = {job: status for job, _, status in self._kept.schedule()}
        statuses |= {name: job.status for name, job in self._jobs.items()}
        for name, due_us in list(self._due_at.items()):
            status = statuses.get(name)
            if due_us > now_us and (status not in CLOSED or status == "lost"):
                self._schedule(name, now_us)

    # Events

    def apply(self, event: Event, raw: bytes | None, now_us: int) -> Answer:
        """Fold one event into its job's state, and hand it to the writer if it counts.

        Args:
            event: The event.
            raw: Its JSON; None if it is stored already.
            now_us: When it arrived.
        """
        job = self._jobs.get(event.job) or self._wake(event.job)
        if job is None:
            if event.job in self._dropped or self._kept.expired(event.job) is not None:
                return Answer.EXPIRED
            job = _Job(JobState(event.job), "new", None, now_us)
            self._jobs[event.job] = job
            self.statuses["new"] += 1
        answer = _ANSWERS[apply(job.state, event, self._rules)]
        if answer in (Answer.TAKEN, Answer.CONFLICT):
            if raw is not None:
                self._writer.event(event, raw)
            job.arrived_us = now_us
            self._changed[event.job] = self._unpublished[event.job] = job
            job.unsettled += 1
            if job.unsettled >= _SETTLE_EVERY:
                self._settle(job)
        return answer

    def _wake(self, name: str) -> _Job | None:
        row = self._kept.job(name)
        if row is None or name in self._dropped:
            return None
        state = None if row.state is None else _loaded(row.state)
        job = _Job(state or self._refold(name), row.status, row.due_us, row.arrived_us)
        if not job.state.accepted:
            return None  # nothing that could be folded is stored any more
        self._jobs[name] = job
        if state is None:
            self._changed[name] = job  # so that it is kept from now on
        return job

    def _settle(self, job: _Job) -> None:
        job.unsettled = 0
        settled = settle(job.state, self._rules)
        if settled is not None:
            job.settled.append(settled)

    # Publishing

    def publish(self, now_us: int, clock: int, behind: Container[str] = ()) -> int:
        """Hand the jobs that had events to the writer, as they stand now; return how many.

        Args:
            now_us: The time.
            clock: The clock that counts for jobs: earlier, where something is unread.
            behind: Jobs of which more events are at hand. Their clock is their newest event: they must not be called
                silent or lost for what is only unread.
        """
        for name, job in self._unpublished.items():
            self._settle(job)
            if name in behind or not clock:
                self._publish(job, now_us, clock=None)
            else:
                self._publish(job, clock, clock=clock)
        count = len(self._unpublished)
        self._unpublished.clear()
        return count

    def tick(self, now_us: int, go_on: Callable[[], bool], behind: Container[str] = ()) -> int:
        """Publish the jobs that time alone changes, and drop those that are final; return how many were touched.

        Args:
            now_us: The clock that counts for jobs.
            behind: Jobs of which more events are at hand; they are put off.
            go_on: Asked before each job; what is left over stays due.
        """
        count = 0
        put_off: list[tuple[int, str]] = []
        while self._due and self._due[0][0] <= now_us and go_on():
            due_us, name = heapq.heappop(self._due)
            if self._due_at.get(name) != due_us:
                continue  # was put off
            del self._due_at[name]
            if name in behind:
                put_off.append((due_us, name))
                continue
            job = self._jobs.get(name) or self._wake(name)
            if job is None:
                continue
            self._unpublished.pop(name, None)
            final = job.status in CLOSED
            count += 1
            self._publish(job, now_us, clock=now_us)
            if final and job.due_us is not None and job.due_us <= now_us:
                self._drop(name, job)
        for due_us, name in put_off:
            self._schedule(name, due_us)
        return count

    def _publish(self, job: _Job, now_us: int, *, clock: int | None) -> None:
        snap = snapshot(job.state, self._rules, clock)
        for settled in job.settled:
            self._writer.settled(settled, snap.summary.version)
        job.settled.clear()
        self._writer.snapshot(snap)
        self._set_status(job, snap.summary.status)
        # By its own clock it stands as its newest event left it: the machine's clock has its say when all is read.
        job.due_us = now_us if clock is None else next_look(snap, job.state.newest, job.arrived_us, now_us, self._pace)
        if job.due_us is None:
            self._due_at.pop(job.state.job, None)
        else:
            self._schedule(job.state.job, job.due_us)

    def _schedule(self, name: str, due_us: int) -> None:
        if self._due_at.get(name) != due_us:
            self._due_at[name] = due_us
            heapq.heappush(self._due, (due_us, name))

    def _set_status(self, job: _Job, status: str) -> None:
        self.statuses[job.status] -= 1
        self.statuses[status] += 1
        job.status = status

    def _drop(self, name: str, job: _Job) -> None:
        self._dropped[name] = job.status
        self.statuses[job.status] -= 1
        self._jobs.pop(name, None)
        self._changed.pop(name, None)
        self._due_at.pop(name, None)

    # Committing

    def rows(self) -> list[JobRow]:
        """Return what has to be committed of the jobs that changed."""
        return [
            JobRow(name, dump(job.state), job.status, job.due_us, job.arrived_us) for name, job in self._changed.items()
        ]

    def dropped(self) -> list[tuple[str, str]]:
        """Return the jobs whose states are to be dropped, with their last status."""
        return list(self._dropped.items())

    def committed(self) -> None:
        """Take note that `rows` and `dropped` are safe; let go of states that are not in use."""
        for name in self._changed:
            self._jobs[name] = self._jobs.pop(name)
        self._changed.clear()
        self._dropped.clear()
        for name in list(self._jobs)[: max(0, len(self._jobs) - self._limits.states)]:
            if name not in self._unpublished:
                del self._jobs[name]

    @property
    def count(self) -> int:
        """How many jobs are kept."""
        return sum(self.statuses.values())


def _loaded(data: bytes) -> JobState | None:
    """Return the state; None if another version of the fold wrote it."""
    try:
        return load(data)
    except StateError:
        return None
