"""The one thread of the recorder: it wakes every few seconds, so that a trainer that stands still is heard."""

import threading
from collections.abc import Callable

from ettwatch.log import trouble


class Pulse:
    """Calls `beat` on a daemon thread; `beat` returns the seconds until it wants to be called again."""

    def __init__(self, beat: Callable[[], float], first_s: float) -> None:
        self._beat = beat
        self._next_s = first_s
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="ettwatch-pulse", daemon=True)

    def start(self) -> None:
        """Start the thread. RuntimeError if the interpreter is ending."""
        self._thread.start()

    def hurry(self, next_s: float) -> None:
        """Beat in `next_s` seconds from now, whatever the last beat wanted."""
        self._next_s = next_s
        self._wake.set()

    def stop(self) -> None:
        """End the thread and wait for it a moment."""
        self._stopped = True
        self._wake.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(0.5)

    def _run(self) -> None:
        while not self._stopped:
            if self._wake.wait(self._next_s):
                self._wake.clear()
                continue
            try:
                self._next_s = self._beat()
            except Exception as error:
                trouble("pulse", error)
