"""What a command prints to standard error, seen by its launcher: without standing in the way of it.

A terminal is left alone. Of a regular file, what was added is read at the end. Anything else (a pipe, mostly) is read
by a process of its own, which passes everything on (`ettwatch.relay`).
"""

import os
import select
import stat
import sys
from contextlib import suppress
from typing import Final

from ettwatch import relay
from ettwatch.log import trouble

DRAIN_S: Final = 2.0
"""Seconds for which the end of the command waits until the last of its output is passed on."""


class ErrorStream:
    """Standard error for one run of a command. For the main thread of a launcher."""

    def __init__(self, folder: str, watch: bool = True) -> None:
        self.stdout: int | None = None
        """What the command gets as standard output and error; None: the launcher's own."""
        self.stderr: int | None = None
        self._path = os.path.join(folder, "stderr")
        self._ends: tuple[int, int] | None = None
        self._life: int | None = None
        """Readable when the reading process is over: it alone holds the other end."""
        self._file: tuple[str, int] | None = None
        if folder and watch:
            try:
                self._open()
            except OSError as error:
                trouble("watching standard error", error)
                self.close()

    def _open(self) -> None:
        found = os.fstat(2)
        if os.isatty(2):
            return
        own = "/proc/self/fd/2"
        if stat.S_ISREG(found.st_mode) and os.access(own, os.R_OK):
            self._file = (own, found.st_size)
            return
        with suppress(OSError):
            os.unlink(self._path)
        self._ends = os.pipe()
        self.stderr = self._ends[1]
        with suppress(OSError):  # one pipe for both: lines must stay in order
            if os.path.sameopenfile(1, 2) and stat.S_ISFIFO(found.st_mode):
                self.stdout = self._ends[1]
        self._start()

    def _start(self) -> None:
        assert self._ends is not None
        if not sys.executable:
            raise OSError("the path of the Python interpreter is not known")
        life, held = os.pipe()
        try:
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", relay.__file__, self._path],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, self._ends[0], 0),
                    (os.POSIX_SPAWN_DUP2, 2, 1),
                    (os.POSIX_SPAWN_DUP2, held, relay.LIFE),
                ],
            )
            if os.waitpid(pid, 0)[1]:
                raise OSError("the process that was to read it did not start")
        except BaseException:
            os.close(life)
            raise
        finally:
            os.close(held)
        self._life = life

    def _reader_is_over(self, wait_s: float) -> bool:
        return self._life is None or bool(select.select([self._life], [], [], wait_s)[0])

    def look(self) -> None:
        """Start the reader again if it was killed: the command must not wait for a pipe that nobody reads."""
        if self._ends is not None and self._life is not None and self._reader_is_over(0):
            os.close(self._life)
            self._life = None
            try:
                self._start()
            except OSError as error:
                trouble("passing standard error on", error)

    def close(self) -> None:
        """Let go; what was printed is passed on before this returns, unless something still prints."""
        if self._ends is not None:
            for end in self._ends:
                os.close(end)
            self._ends = self.stderr = self.stdout = None
        if self._life is not None:
            self._reader_is_over(DRAIN_S)
            os.close(self._life)
            self._life = None

    def read(self) -> str:
        """Return the end of what was printed, and what it said of memory. After `close`."""
        tail = relay.Tail()
        try:
            if self._file is not None:
                path, start = self._file
                with open(path, "rb") as file:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(max(min(start, size), size - 1024 * 1024))
                    tail.take(file.read())
                return tail.read().decode("utf-8", "replace")
            with open(self._path, "rb") as file:
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""
