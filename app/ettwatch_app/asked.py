"""An event that the handler of a signal may set."""

import signal
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue

__all__ = ["Asked", "stop_by_signal"]


class Asked(threading.Event):
    """Is set by a signal, in whichever line it comes; it is never cleared.

    A plain event holds its lock for moments while it is waited for. A handler that runs in one of them, in the same
    thread, would wait for that lock for ever. The queue's `put` may be called there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._asked = False
        self._told: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        """Whether it was asked for."""
        return self._asked

    def set(self) -> None:
        """Let all who wait go on."""
        self._asked = True
        self._told.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for some seconds at most; return whether it is."""
        if not self._asked:
            with suppress(Empty):
                self._told.get(timeout=None if timeout is None else max(0.0, timeout))
                self._told.put(None)  # for the next one
        return self._asked


def stop_by_signal() -> Asked:
    """Return an event that SIGTERM and SIGINT set; the second one ends the process as usual."""
    stop = Asked()

    def asked(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, asked)
    return stop
