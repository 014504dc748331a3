"""Start and end of an attempt as seen from inside the trainer: who says what, and where it is left unsaid."""

import atexit
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal

from ettwatch.amounts import exit_code as tidy_code
from ettwatch.book import conclude
from ettwatch.causes import cause_of, message_of
from ettwatch.log import guarded, trouble
from ettwatch.outbox import Outbox
from ettwatch.reporter import Reporter
from ettwatch.runfolder import Note, leave_attempt, leave_note
from ettwatch.settings import Settings

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


class Life:
    """Tells that job and attempt begin and end, where no launcher does; leaves word for the launcher where one does.

    Only the process that called `begin` can end the attempt: a forked child cannot.
    """

    def __init__(self, outbox: Outbox, reporter: Reporter, settings: Settings) -> None:
        self._outbox = outbox
        self._reporter = reporter
        self._exit_s = settings.exit_s
        self._spool = settings.spool
        self._pid = os.getpid()
        self._ended = False
        self._finishing = threading.Lock()
        self._hook: Hook | None = None
        self._hook_before: Hook = sys.excepthook

    def begin(self) -> None:
        """Tell of the start, and watch for the end of the process."""
        who = self._outbox.identity
        if who.run_dir is not None:
            try:
                leave_attempt(who.run_dir, who.attempt)
            except OSError as error:
                trouble("telling the launcher of the attempt", error)
        if who.rank == 0 and not who.launched:
            self._outbox.send(
                "job_submitted", team=who.team, model=who.model, cluster=who.cluster, gpus=who.gpus, labels=who.labels
            )
        if who.rank == 0 and (not who.launched or who.elastic_restart):
            self._outbox.send(
                "attempt_started",
                gpus=who.gpus,
                world_size=who.world_size,
                trigger="failure" if who.elastic_restart else None if who.attempt else "initial",
            )
        atexit.register(self._at_exit)
        self._watch_exceptions()
        self._reporter.wake()

    def finish(
        self,
        outcome: str,
        cause: str | None = None,
        message: str | None = None,
        exit_code: object = None,
        told: bool = True,
    ) -> None:
        """Tell of the end; only the first call counts. `told`: the trainer said so, it was not concluded."""
        if os.getpid() != self._pid or not self._finishing.acquire(False):
            return  # another thread is about it, or this one, in the middle of which a signal handler calls
        try:
            if not self._ended:
                self._finish(outcome, cause, message, exit_code, told)
        finally:
            self._finishing.release()

    def _finish(self, outcome: str, cause: str | None, message: str | None, exit_code: object, told: bool) -> None:
        self._reporter.catch_up()
        who = self._outbox.identity
        ts = self._outbox.clock.now()
        code = tidy_code(exit_code)
        if outcome == "failed" or (not who.launched and (who.rank == 0 or outcome != "succeeded")):
            self._outbox.send("attempt_ended", ts, outcome=outcome, cause=cause, exit_code=code, message=message)
        goes_on = outcome == "preempted" or (outcome == "failed" and who.elastic_retries)
        if not who.launched and who.rank == 0 and not goes_on:
            self._outbox.send("job_ended", ts, outcome=outcome)
        if who.booked and who.rank == 0:
            try:
                conclude(self._spool, who.job, who.attempt, outcome)
            except OSError as error:
                trouble("keeping the numbers of attempts", error)
        if who.run_dir is not None and told:
            kind: Literal["failed", "ended"] = "failed" if outcome == "failed" else "ended"
            try:
                leave_note(who.run_dir, kind, who.attempt, who.rank, Note(ts, outcome, cause, message))
            except OSError as error:
                trouble("telling the launcher of the end", error)
        self._ended = True
        self._outbox.mute()
        self._reporter.stop()
        if sys.excepthook is self._hook:
            sys.excepthook = self._hook_before
        if self._outbox.close(self._exit_s):
            atexit.unregister(self._at_exit)

    @guarded(None)
    def uncaught(self, error: BaseException) -> None:
        """Tell of an exception that ends the process."""
        if isinstance(error, SystemExit):
            code = error.code
            if code in (None, 0):
                self.finish("succeeded")
            else:
                self.finish("failed", "unknown", f"exit {code!r}", code if isinstance(code, int) else 1)
        elif isinstance(error, KeyboardInterrupt):
            self.finish("cancelled")
        else:
            self.finish("failed", cause_of(error), message_of(error))

    def _watch_exceptions(self) -> None:
        before = self._hook_before = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
            self.uncaught(error)
            before(kind, error, traceback)

        self._hook = sys.excepthook = hook

    @guarded(None)
    def _at_exit(self) -> None:
        """The interpreter ends and nobody said how the attempt did: well, as far as can be seen from here."""
        self.finish("succeeded", told=False)
        self._outbox.close(self._exit_s)
