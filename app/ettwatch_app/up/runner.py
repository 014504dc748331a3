"""The loop of `ettwatch up`: look, read, fold, commit, tidy up, wait."""

from collections.abc import Callable, Iterable
from typing import Final

from ettwatch_app.up.commit import Committer
from ettwatch_app.up.doubts import LIMIT
from ettwatch_app.up.failpoint import failpoint
from ettwatch_app.up.jobs import Answer, Jobs
from ettwatch_app.up.letters import Letter
from ettwatch_app.up.log import Log
from ettwatch_app.up.messages import Message
from ettwatch_app.up.progress import Progress, Totals
from ettwatch_app.up.settings import UpSettings
from ettwatch_app.up.spool import Spool
from ettwatch_schemas import Event, encode_event

_TICK_S: Final = 0.25

_BACK_US: Final = 2_000_000
"""A clock that goes back by more is set right, by less it is steered."""


class Runner:
    """One run, on one thread.

    Args:
        settings: What it was told.
        spool: The files.
        jobs: The jobs.
        committer: Makes durable what was read.
        log: Where it speaks.
        progress: The line that tells how far it is.
        clock: The time in µs.
        monotonic: A monotonic clock (s).
        wait: Waits for some seconds; returns True if the run is to end.
        tend: Called in every round: what else there is to look after.
    """

    def __init__(
        self,
        settings: UpSettings,
        spool: Spool,
        jobs: Jobs,
        committer: Committer,
        log: Log,
        progress: Progress,
        *,
        clock: Callable[[], int],
        monotonic: Callable[[], float],
        wait: Callable[[float], bool],
        tend: Callable[[], None] | None = None,
    ) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._spool = spool
        self._jobs = jobs
        self._committer = committer
        self._log = log
        self._progress = progress
        self._clock = clock
        self._monotonic = monotonic
        self._wait = wait
        self._tend = tend
        self.totals = Totals(rejects=committer.rejects)
        self._dirty = False
        self._unwritten = 0  # bytes of events
        self._caught_up = False
        self._scan_s = self._commit_s = self._start_s = monotonic()
        self._latest_us = 0

    def take_stored(self, events: Iterable[Event]) -> int:
        """Fold events that the last run stored and could not commit any more; return how many the states lacked."""
        now_us = self._clock()
        lacked = 0
        for event in events:
            answer = self._jobs.apply(event, None, now_us)
            if answer in (Answer.TAKEN, Answer.CONFLICT):
                lacked += 1
                self.totals.conflicts += answer is Answer.CONFLICT
        self.totals.taken += lacked
        self._dirty = self._dirty or lacked > 0
        return lacked

    def run(self) -> None:
        """Work until told to stop; with `once`, until everything is read.

        Raises:
            GaveUp: It could not be written.
        """
        while not self._over():
            self.round()
            idle = not self._spool.behind
            if self._settings.once and idle:
                break
            if self._wait(self._limits.poll_s if idle else 0.0):
                break
        self._finish()

    def _over(self) -> bool:
        limit_s = self._settings.stop_after_s
        return limit_s is not None and self._monotonic() - self._start_s >= limit_s

    def round(self) -> None:
        """Do one round: what there is to do now, without waiting."""
        if self._tend is not None:
            self._tend()
        self.mind_clock(self._clock())
        now_s = self._monotonic()
        if now_s >= self._scan_s or self._settings.once:
            self._spool.scan()
            self._scan_s = now_s + self._limits.poll_s
        if self._spool.fill():
            failpoint("read")
            self._take()
            failpoint("applied")
        # What happened while nobody was watching is read first: until then nobody is called silent for it.
        self._caught_up = self._caught_up or not self._spool.behind
        if self._caught_up:
            self._tick()
        if self._dirty and (self._monotonic() >= self._commit_s or self._full()):
            self._commit()
        self._tidy()
        self._progress.tell(self.totals, self._jobs.statuses, self._spool.count, self._spool.bytes_behind)

    def mind_clock(self, now_us: int) -> None:
        """Take note of a time of the clock (µs); one that is behind an earlier one means that the clock was wrong."""
        if now_us < self._latest_us - _BACK_US:
            back_s = (self._latest_us - now_us) // 1_000_000
            self._log.alert(
                "clock", f"the clock went back by {back_s:,} s: looking at all jobs that are not over again"
            )
            self._jobs.clock_went_back(now_us)
            self._latest_us = now_us
        self._latest_us = max(self._latest_us, now_us)

    def _take(self) -> None:
        events = 0
        for file, message in self._spool.take():
            self._handle(file.path, message)
            events += max(1, len(message.events))
            if events >= self._limits.batch_events:
                break
        self._dirty = True

    def _handle(self, path: str, message: Message) -> None:
        now_us = self._clock()
        totals = self.totals
        totals.lines += 1
        self._unwritten += len(message.raw)
        for refusal in message.refusals:
            self._committer.refuse(Letter(path, message, refusal))
        alone = len(message.events) == 1 and not message.refusals and message.raw.lstrip()[:1] == b"{"
        for event in message.events:
            raw = message.raw.strip() if alone else encode_event(event)
            answer = self._jobs.apply(event, raw, now_us)
            if answer is Answer.DUPLICATE:
                totals.duplicates += 1
            elif answer in (Answer.LATE, Answer.EXPIRED):
                self._committer.doubts.add(answer.value, path, message, event)
            else:
                totals.taken += 1
                totals.conflicts += answer is Answer.CONFLICT

    def _tick(self, limit_s: float = _TICK_S) -> None:
        until_s = self._monotonic() + limit_s
        if self._jobs.tick(self._time(), lambda: self._monotonic() < until_s, self._spool.jobs_behind()):
            failpoint("ticked")
            self._dirty = True

    def _time(self) -> int:
        """The clock that counts for the jobs: it waits for what is unread, which may be anybody's."""
        front = self._spool.front()
        return self._clock() if front is None else min(self._clock(), front)

    def _full(self) -> bool:
        limits = self._limits
        return (
            self._committer.rows_pending >= limits.batch_rows
            or self._unwritten + self._committer.letters_pending >= limits.batch_bytes
            or len(self._committer.doubts) >= LIMIT
        )

    def _commit(self) -> None:
        begun_s = self._monotonic()
        self._committer.commit(self._time(), self._spool.jobs_behind())
        self._dirty = False
        self._unwritten = 0
        self.totals.duplicates += self._committer.duplicates
        self._committer.duplicates = 0
        took_s = self._monotonic() - begun_s
        # Commits cost more the more jobs there are: they are spaced out so that most of the time is left to read.
        self._commit_s = begun_s + max(self._limits.commit_s, took_s / self._limits.busy_share)

    def _tidy(self) -> None:
        for notice in self._spool.notices():
            self._log.alert("file", notice)
            self.totals.troubles += 1
        self.totals.removed += len(self._committer.sweep())

    def _finish(self) -> None:
        if self._settings.once:
            self._tick(float("inf"))
        if self._dirty:
            self._commit()
        self._tidy()
        self._progress.tell(self.totals, self._jobs.statuses, self._spool.count, self._spool.bytes_behind, now=True)
