"""One file of the spool folder: locked while its writer lives, one write for each line."""

import errno
import fcntl
import os
from contextlib import suppress
from typing import Final

from ettwatch.descriptors import Descriptor

_NO_LOCKS: Final = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL})
"""What file systems answer that have no locks: the file is written all the same."""


class SpoolFile:
    """An event file that only this process writes. Every method raises OSError as it comes.

    The file appears under its name only when it is locked, and is unlocked by its end, however that comes: a
    reader that gets the lock knows that nothing more follows.
    """

    __slots__ = ("_file", "_pid", "path", "size")

    def __init__(self, folder: str, stem: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, f"{stem}.jsonl")
        hidden = os.path.join(folder, f".{stem}.tmp")
        self._file = Descriptor(hidden, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)
        try:
            _lock(self._file.number)
            if os.path.exists(self.path):
                raise FileExistsError(errno.EEXIST, "another writer has this file", self.path)
            os.rename(hidden, self.path)
        except BaseException:
            self._file.close()
            with suppress(OSError):
                os.unlink(hidden)
            raise
        self._pid = os.getpid()
        self.size = 0

    def write(self, line: bytes, fsync: bool) -> None:
        """Append a whole line, or nothing of it."""
        stat = self._file.look()  # never write into what took over the number
        fd = self._file.number
        if stat.st_nlink == 0:
            raise OSError(errno.ESTALE, "the file was removed", self.path)
        if stat.st_size != self.size:  # what others left there may be half a line, which would spoil this one
            raise OSError(errno.ESTALE, "the file was changed by other code", self.path)
        done = os.write(fd, line)
        if done != len(line):
            self._write_rest(fd, line[done:], stat.st_size)
        self.size = stat.st_size + len(line)
        if fsync:
            os.fsync(fd)

    def _write_rest(self, fd: int, rest: bytes, size: int) -> None:
        """Write what the disk did not take at once, or take back what it took: half a line would spoil the next."""
        try:
            if os.write(fd, rest) != len(rest):
                raise OSError(errno.ENOSPC, "only a part of an event could be written", self.path)
        except BaseException:
            try:
                os.ftruncate(fd, size)
            except OSError:
                self.close()  # then the half line is the last one, and a new file is begun
            raise

    def close(self) -> None:
        """Close the file, which unlocks it; one that got nothing is removed.

        In a forked child this leaves the parent's lock and file alone.
        """
        with suppress(OSError):
            if self._file.look().st_size == 0 and os.getpid() == self._pid:
                with suppress(OSError):
                    os.unlink(self.path)
        self._file.close()


def _lock(fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
