"""Replay with a limit on lateness: one pass, in which jobs that are over are summarized and dropped."""

import heapq

from ettwatch_app.replay.options import Options
from ettwatch_app.replay.problems import Problems
from ettwatch_app.replay.results import Results
from ettwatch_app.replay.tally import Tally
from ettwatch_core import settle, summarize
from ettwatch_schemas import Event, Segment

_DAY = 86_400_000_000
_KEPT_LOST = 30 * _DAY
_CLOSED = frozenset(("succeeded", "failed", "cancelled", "lost"))


class Streamed:
    """Takes events in the order of the input; memory for the jobs that live, and the names of the dropped.

    The clock is the newest time that two jobs have reached in the file that is being read (one job whose clock is
    wrong must not close the others): a job that ended is dropped once that clock is more than `lateness` past it,
    a lost one 30 days later. What comes for it after that is refused.
    """

    def __init__(self, options: Options, problems: Problems, results: Results) -> None:
        assert options.rules.lateness is not None
        self._lateness = options.rules.lateness
        closed_after = max(options.rules.lost_after, options.rules.retry_after)
        self._forgotten_after = max(self._lateness, _KEPT_LOST + closed_after)
        self._options = options
        self._problems = problems
        self._results = results
        self._tally = Tally(options, problems)
        self._clock = self._swept = self._newest = 0
        self._newest_job = ""
        self._settled: dict[str, list[Segment]] = {}
        self._ended: list[tuple[int, str]] = []
        self._dropped: set[str] = set()

    @property
    def accepted(self) -> int:
        """Number of events that were applied."""
        return self._tally.accepted

    @property
    def live(self) -> int:
        """Number of jobs that are held."""
        return len(self._tally.states)

    def begin_file(self) -> None:
        """Start the clock anew: files need not follow each other in time."""
        self._clock = self._swept = self._newest = 0

    def add(self, place: int, event: Event) -> None:
        """Apply one event; settle its job and drop those that are over, now and then."""
        job = event.job
        if job in self._dropped:
            self._problems.add(
                place,
                "expired",
                f"job: {job!r} ended more than --lateness before the time that the file has reached, and is closed; "
                "the event is refused",
            )
            return
        state = self._tally.add(place, event)
        settled = settle(state, self._options.rules)
        if settled is not None and self._options.segments:
            self._settled.setdefault(job, []).extend(settled.segments)
        if self._moved_on(job, event.ts):
            self._drop_what_is_over()
        if event.kind == "job_ended":
            heapq.heappush(self._ended, (max(self._clock, event.ts) + self._lateness, job))

    def finish(self) -> None:
        """Summarize what is left."""
        for job in list(self._tally.states):
            self._drop(job)

    def _moved_on(self, job: str, ts: int) -> bool:
        """Take a time into the clock; tell whether the clock has moved."""
        reached = ts
        if ts > self._newest:
            reached, self._newest = self._newest, ts
            if job == self._newest_job:
                return False
            self._newest_job = job
        elif job == self._newest_job:
            return False
        if reached <= self._clock:
            return False
        self._clock = reached
        return True

    def _drop_what_is_over(self) -> None:
        while self._ended and self._ended[0][0] < self._clock:
            _, job = heapq.heappop(self._ended)
            state = self._tally.states.get(job)
            if state is None:
                continue
            if state.newest + self._lateness >= self._clock:
                heapq.heappush(self._ended, (state.newest + self._lateness, job))
            elif self._is_closed(job):
                self._drop(job)
        if self._clock - self._swept >= _DAY:
            self._swept = self._clock
            oldest = self._clock - self._forgotten_after
            silent = [job for job, state in self._tally.states.items() if state.newest < oldest]
            for job in silent:
                if self._is_closed(job):
                    self._drop(job)

    def _is_closed(self, job: str) -> bool:
        return summarize(self._tally.states[job], self._options.rules, self._clock).status in _CLOSED

    def _drop(self, job: str) -> None:
        line = self._tally.line_of(job, self._settled.pop(job, []))
        self._results.add(self._tally.first.pop(job), line)
        del self._tally.states[job]
        self._dropped.add(job)
