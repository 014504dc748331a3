"""The processes of a demo: each with a log, none left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_GRACE_S = 15.0


class Child:
    """One process and its log."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        with log.open("wb") as out:
            # A group of its own: Ctrl-C is for the demo, which then ends its children in order.
            self._process = subprocess.Popen(
                argv,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.log = log

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def tail(self, lines: int = 30) -> str:
        """The last lines of its log."""
        with self.log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 256 * lines))
            text = file.read().decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-lines:])

    def ask_to_end(self) -> None:
        """Send SIGTERM."""
        if self._process.poll() is None:
            self._process.terminate()

    def wait(self, seconds: float) -> int | None:
        """Wait for its end; None if it does not come."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def kill(self) -> None:
        """End it and whatever is left of its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Children:
    """A context in which processes are started; at its end they are asked to stop, last one first, then killed."""

    def __init__(self) -> None:
        self._started: list[Child] = []

    def start(self, argv: Sequence[str], env: Mapping[str, str], log: Path) -> Child:
        """Start a process with its output in `log`."""
        child = Child(argv, env, log)
        self._started.append(child)
        return child

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for child in reversed(self._started):
                child.ask_to_end()
                deadline = time.monotonic() + _GRACE_S
                while child.exit_code is None and time.monotonic() < deadline:
                    time.sleep(0.05)
        finally:
            # Also after a second Ctrl-C.
            for child in reversed(self._started):
                child.kill()


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Make SIGTERM leave by the same way as Ctrl-C, so that no process stays behind."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
