"""Descriptors that are kept open in a trainer's process: not in its way, and known again."""

import errno
import fcntl
import os
from contextlib import suppress
from typing import Final

_FIRST: Final = 3
"""The first that is none of standard input, output and error."""


class Descriptor:
    """An open file that is kept. A trainer may close descriptors that it did not open, and reuse their numbers."""

    __slots__ = ("_fd", "_file")

    def __init__(self, path: str, flags: int) -> None:
        """Open a file; readable and writable by all as far as the umask allows. Raises OSError."""
        fd = os.open(path, flags | os.O_CLOEXEC, 0o666)
        try:
            if fd < _FIRST:  # the trainer has closed these: what is printed must not end up in this file
                fd, low = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST), fd
                os.close(low)
            stat = os.fstat(fd)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._file = (stat.st_dev, stat.st_ino)

    def look(self) -> os.stat_result:
        """Return what the file is like. OSError with EBADF if its number is somebody else's now."""
        stat = os.fstat(self._fd)
        if (stat.st_dev, stat.st_ino) != self._file:
            self._fd = -1
            raise OSError(errno.EBADF, "the descriptor was closed by other code")
        return stat

    @property
    def number(self) -> int:
        """The descriptor; -1 if it is closed. Right after `look` it is that of this file."""
        return self._fd

    def is_at(self, path: str) -> bool:
        """Tell whether this file is the one that others find at `path`."""
        try:
            self.look()
            there = os.stat(path)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == self._file

    def close(self) -> None:
        """Close the file, unless other code has."""
        with suppress(OSError):
            self.look()
            os.close(self._fd)
        self._fd = -1
