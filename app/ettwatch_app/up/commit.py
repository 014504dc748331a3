"""One commit: effects first, then the place, and patience where the disk or ClickHouse refuses."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Container
from typing import TypeVar

from ettwatch_app.up.doubts import Doubts
from ettwatch_app.up.failpoint import failpoint
from ettwatch_app.up.jobs import Jobs
from ettwatch_app.up.letters import DeadLetters, Letter
from ettwatch_app.up.log import Log
from ettwatch_app.up.spool import Spool
from ettwatch_app.up.statefile import Change, StateFile
from ettwatch_clickhouse import Store, StoreError, Writer

T = TypeVar("T")


class GaveUp(Exception):
    """Something cannot be written and there is no more time to wait for it. Nothing is lost: it is read again."""


class Committer:
    """Makes what was read durable.

    Args:
        store: To look up refused events.
        writer: Holds the rows to write.
        kept: The state file.
        jobs: The jobs.
        spool: The files.
        letters: The dead letters.
        log: Where to tell that something cannot be written.
        clock: The time in µs.
        wait: Waits for some seconds; returns True if there is no more time to wait.
        pauses: First and longest pause (s) before the next try.
        tries: So many tries, then give up; None to go on for ever.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        kept: StateFile,
        jobs: Jobs,
        spool: Spool,
        letters: DeadLetters,
        log: Log,
        *,
        clock: Callable[[], int],
        wait: Callable[[float], bool],
        pauses: tuple[float, float],
        tries: int | None,
    ) -> None:
        self._store = store
        self._writer = writer
        self._kept = kept
        self._jobs = jobs
        self._spool = spool
        self._letters = letters
        self._log = log
        self._clock = clock
        self._wait = wait
        self._pauses = pauses
        self._tries = tries
        self.doubts = Doubts()
        self.rejects: Counter[str] = Counter()
        self._unwritten: Counter[str] = Counter()
        self.duplicates = 0

    def refuse(self, letter: Letter) -> None:
        """Take one refusal to the dead letters."""
        self.rejects[letter.refusal.code] += 1
        self._unwritten[letter.refusal.code] += 1
        self._letters.add(letter, self._clock())

    @property
    def rows_pending(self) -> int:
        """Rows that wait for the next commit."""
        return self._writer.pending

    @property
    def letters_pending(self) -> int:
        """Bytes of dead letters that wait for the next commit."""
        return self._letters.pending

    def commit(self, clock: int, behind: Container[str]) -> None:
        """Publish what changed, by the clock (µs) that counts for jobs, and make everything up to here durable.

        After a crash at any point in here, the next start reads again from the old places with the old fold states:
        the same rows are written once more, under the same keys, and the dead letters are cut back.

        Raises:
            GaveUp: It cannot be written, and the run is to end.
        """
        now_us = self._clock()
        self._jobs.publish(now_us, clock, behind)
        failpoint("published")
        self._insist("ClickHouse", self._writer.flush)
        failpoint("flushed")
        rejects, duplicates = self._insist("ClickHouse", lambda: self.doubts.resolve(self._store))
        for letter in rejects:
            self.refuse(letter)
        self.doubts.clear()
        self.duplicates += duplicates
        length = self._insist("the dead letters", self._letters.settle)
        failpoint("letters_written")
        change = Change(
            now_us,
            length,
            self._spool.moved(),
            self._jobs.rows(),
            self._jobs.dropped(),
            dict(self._unwritten),
        )
        self._insist("the state file", lambda: self._kept.commit(change))
        failpoint("committed")
        self._unwritten.clear()
        self._spool.committed()
        self._jobs.committed()

    def sweep(self) -> list[str]:
        """Remove spool files that are done with; return their names."""
        removed = self._spool.sweep()
        if removed:
            failpoint("removed")
        places = self._spool.to_forget()
        if places:
            self._insist("the state file", lambda: self._kept.forget(places))
            failpoint("forgotten")
        return removed

    def _insist(self, what: str, step: Callable[[], T]) -> T:
        pause, longest = self._pauses
        failed = 0
        while True:
            try:
                done = step()
            except (StoreError, sqlite3.Error, OSError) as e:
                failed += 1
                if failed == self._tries:
                    raise GaveUp(f"cannot write to {what}: {e}") from e
                self._log.alert(
                    "cannot_write",
                    f"cannot write to {what}: {e}; reading waits until it can be written, next try in {pause:g} s",
                    what=what,
                )
                if self._wait(pause):
                    raise GaveUp(f"stopped while {what} could not be written: {e}") from e
                pause = min(2 * pause, longest)
            else:
                if failed:
                    self._log.say("writing_again", f"{what} takes writes again", what=what)
                return done
