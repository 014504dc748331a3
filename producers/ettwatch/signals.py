"""Signals to a launcher: kept in order, to be passed on by its own loop and not in the middle of anything."""

import os
import select
import signal
from collections import deque
from types import FrameType, TracebackType
from typing import Any, Final

FORWARDED: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Signals:
    """Catches the signals that a launcher passes on, while its block lasts. For the main thread only.

    What was ignored when the launcher was started, as by nohup, stays ignored.
    """

    def __init__(self) -> None:
        self.queue: deque[int] = deque()
        self._before: dict[int, Any] = {}
        self._read, self._write = -1, -1
        self._wakeup_before = -1
        self._mask: set[int] = set()

    def __enter__(self) -> "Signals":
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._keep)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, _wake)
        # Whoever started the launcher may have blocked them, and a mask is handed on.
        self._mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, self._before)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._read)
        os.close(self._write)

    def _keep(self, number: int, frame: FrameType | None) -> None:
        self.queue.append(number)

    def wait(self, timeout_s: float) -> None:
        """Return when a signal came or a child ended since the last call, at the latest after `timeout_s` seconds."""
        if self.queue:
            return
        ready, _, _ = select.select([self._read], [], [], max(timeout_s, 0.0))
        if ready:
            os.read(self._read, 4096)


def _wake(number: int, frame: FrameType | None) -> None:
    """Take note of a child's end: the pipe has woken the loop already."""
