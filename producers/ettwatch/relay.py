"""Errors that a command prints: passed on as they come, and the end of them kept for its launcher.

As a script (`relay.py FILE`) it copies standard input to standard output until the input ends, and leaves in FILE what
`Tail` keeps. It goes into the background, and outlives its launcher, so that nothing that still prints is cut off. It
uses nothing but the standard library.
"""

import os
import re
import select
import signal
import sys
from contextlib import suppress
from typing import Final

TAIL_BYTES: Final = 64 * 1024
TELLING: Final = re.compile(rb"out ?of ?memory|oom.?kill|MemoryError", re.IGNORECASE)
"""What is kept however much follows it: the first rank to fail is not the last one to print."""
LIFE: Final = 3
"""A descriptor that is closed by the end of this process, and so tells of it."""
_MAX_TELLING: Final = 50
_MAX_LINE: Final = 2000
_QUIET_S: Final = 0.1


class Tail:
    """The last bytes of a stream, and before them the first lines that tell of memory."""

    def __init__(self) -> None:
        self._telling: list[bytes] = []
        self._rest = b""
        self._last = b""

    def take(self, data: bytes) -> None:
        """Take in the next piece of the stream."""
        self._last = (self._last + data)[-TAIL_BYTES:]
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        self._rest = rest[-_MAX_LINE:]
        if newline and len(self._telling) < _MAX_TELLING and TELLING.search(whole):
            found = [line[:_MAX_LINE] for line in whole.split(b"\n") if TELLING.search(line)]
            self._telling = (self._telling + found)[:_MAX_TELLING]

    def read(self) -> bytes:
        """Return what is kept."""
        lines = [line for line in self._telling if line not in self._last]
        return b"\n".join([*lines, self._last])


def main() -> int:
    """Copy standard input to standard output, and keep its end in the file that is named."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if os.fork():
        os._exit(0)
    os.setsid()  # a signal to everything in the foreground is not for it
    with suppress(OSError):  # what it says itself is not for the one it reads
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    path, tail, kept, passing = sys.argv[1], Tail(), True, True
    while True:
        if not kept and not select.select([0], [], [], _QUIET_S)[0]:
            _keep(path, tail)
            kept = True
        data = os.read(0, 65536)
        if not data:
            break
        if passing:
            passing = _pass_on(data)  # if nobody reads any more the command is not to notice
        tail.take(data)
        kept = False
    _keep(path, tail)
    return 0


def _pass_on(data: bytes) -> bool:
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:
            select.select([], [1], [])
        except OSError:
            return False
    return True


def _keep(path: str, tail: Tail) -> None:
    with suppress(OSError):  # the launcher is gone and has taken its folder away
        fd = os.open(f"{path}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, tail.read())
        finally:
            os.close(fd)
        os.replace(f"{path}.tmp", path)


if __name__ == "__main__":
    sys.exit(main())
