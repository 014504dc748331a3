"""The thread that brings events from the spool folder to Kafka, if this process is the one of its host to do so."""

import os
import threading
from time import monotonic
from typing import TYPE_CHECKING, Final

from ettwatch.delivery.guard import importing
from ettwatch.log import trouble, warn
from ettwatch.settings import Settings
from ettwatch.transport import FileTransport

if TYPE_CHECKING:  # what sends is imported by the thread
    from ettwatch.delivery.round import Round

FIRST_S: Final = 0.3
"""Seconds before the first look: a launcher that was started before this process has the lead by then."""
LOOK_S: Final = 1.0
"""Seconds between looks."""
PAUSE_S: Final = 0.02
"""Seconds between loads while there are more: the trainer's thread needs the interpreter, too."""
LAST_RETRY_S: Final = 30.0
INCAPABLE_S: Final = 60.0
"""Seconds for which a process that cannot send, as for want of a package, leaves the lead to others."""


class Courier:
    """Sends what one process told, and, if it leads, what the other processes of its host did.

    Its thread is started by the first event. Nothing it does reaches the trainer, which waits for it only in
    `flush`.
    """

    def __init__(self, settings: Settings, host: str, transport: FileTransport) -> None:
        self._settings = settings
        self._host = host
        self._transport = transport
        self._begin()

    def _begin(self) -> None:
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._wake = threading.Event()
        self._flushed = threading.Event()
        self._flushing = False
        self._left_s = self._settings.exit_s
        self._round: Round | None = None
        self._not_before = 0.0
        """Before then no other thread is started: one could not be, or came to grief."""

    def after_fork(self) -> None:
        """Become a child's: no thread yet, and no lock of the parent's."""
        if self._round is not None:
            self._round.after_fork()
        self._begin()

    def wake(self) -> None:
        """See to it that the thread runs. This is called with every event."""
        if self._thread is None and monotonic() >= self._not_before and self._starting.acquire(False):
            try:
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="ettwatch-courier", daemon=True)
                    self._thread = thread
                    thread.start()
            except RuntimeError as error:  # the interpreter ends, or the system has no more threads
                self._thread, self._not_before = None, monotonic() + INCAPABLE_S
                trouble("starting the thread that sends events", error)
            finally:
                self._starting.release()

    def flush(self, budget_s: float) -> None:
        """Wait until this process's events are sent or left to another to send, at most for what is left to wait.

        That is `ETTWATCH_EXIT_S` in all, however often this is called.
        """
        thread = self._thread
        if thread is None or not thread.is_alive() or thread is threading.current_thread():
            return
        begun = monotonic()
        self._flushed.clear()
        self._flushing = True
        self._wake.set()
        self._flushed.wait(min(budget_s, self._left_s))
        self._left_s = max(self._left_s - (monotonic() - begun), 0.0)

    def _run(self) -> None:
        try:
            self._wake.wait(FIRST_S)
            self._work()
        except BaseException as error:  # of this thread nothing may reach the trainer, not even a traceback
            self._thread, self._not_before = None, monotonic() + INCAPABLE_S
            trouble("the thread that sends events", error)
        finally:
            self._flushed.set()

    def _work(self) -> None:
        with importing():
            from ettwatch.delivery.round import Round
        # What sends lives in this frame: at the end of the interpreter nobody takes it apart and waits for it.
        work = self._round = Round(self._settings, self._host, self._transport)
        next_s, failures, retry_at = 0.0, 0, 0.0
        while True:
            if not self._flushing:
                self._wake.wait(next_s)
                self._wake.clear()
            flushing = self._flushing
            try:
                if flushing or monotonic() >= retry_at:
                    more = work.send(own_first=flushing)
                    failures, retry_at = 0, 0.0
                    next_s = PAUSE_S if more else LOOK_S
                    if flushing and not more and self._hand_over(work):
                        break
                    continue
                work.watch()
            except Exception as error:
                failures += 1
                retry_at = monotonic() + self._failed(work, error, failures)
            next_s = LOOK_S
            if flushing:  # what was asked for since then has its try next
                # The brokers do not take them: they stay in the spool folder, and are tried again as before.
                self._flushing = False
                self._flushed.set()
        self._flushing, self._thread = False, None
        self._flushed.set()
        work.close()

    def _hand_over(self, work: "Round") -> bool:
        """Leave the lead at the end; False if somebody has left something who saw that this process still had it."""
        led = work.leads
        work.leave()
        return not (led and work.left_behind())

    def _failed(self, work: "Round", error: Exception, failures: int) -> float:
        """Say what went wrong and return the seconds until it is worth another try."""
        from ettwatch.delivery.record import Undelivered

        work.disconnect()
        if isinstance(error, Undelivered):
            warn("kafka", f"{error}; events wait in {self._settings.spool}")
            # Half of it by chance: the hosts of a fleet must not come back as one.
            return min(2.0 ** min(failures - 1, 10), LAST_RETRY_S) * (0.5 + os.urandom(1)[0] / 510)
        from ettwatch.access import BrokersError

        work.leave()
        if isinstance(error, (BrokersError, ImportError)):
            warn("kafka", f"{error}; nothing is sent to Kafka, events stay in {self._settings.spool}")
        else:
            trouble("sending events", error)
        return INCAPABLE_S
