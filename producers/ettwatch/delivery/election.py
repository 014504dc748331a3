"""Which process of a host sends what waits in a spool folder: one at a time, whoever it is."""

import errno
import fcntl
import os
from contextlib import suppress
from time import monotonic
from typing import Final, Literal

STALE_S: Final = 60.0
"""Seconds after which a leader that gives no sign of life, as one that was stopped, is not waited for."""

Role = Literal["leads", "follows", "alone"]
"""`leads`: it sends for all. `follows`: another does. `alone`: it sends its own, because nobody else will."""


class Election:
    """A lock in the spool folder, and its time as the leader's sign of life. For one thread."""

    def __init__(self, folder: str, host: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, f".kafka.{host}.lock")
        self._fd = -1
        self._leads = False
        self._seen = 0
        self._seen_at = monotonic()

    def role(self) -> Role:
        """Take the lead if nobody has it, show that the leader lives, and return the role of this process.

        Raises OSError where the folder cannot be written.
        """
        if self._leads and self._same():
            os.utime(self._fd)
            return "leads"
        if self._leads:  # somebody removed the lock, so others may lead by another
            self.resign()
        if self._fd < 0:
            os.makedirs(self._folder, exist_ok=True)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._follow()
        except OSError as error:
            if error.errno == errno.EBADF:  # closed by other code
                self._fd = -1
                raise
            return "alone"  # a file system without locks
        if not self._same():
            self.resign()
            return "alone"
        self._leads = True
        os.utime(self._fd)
        return "leads"

    def resign(self) -> None:
        """Leave the lead to others."""
        fd, self._fd, self._leads = self._fd, -1, False
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)

    def _follow(self) -> Role:
        seen = os.fstat(self._fd).st_mtime_ns
        now = monotonic()
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        if not self._same():  # removed while it was held: the next look makes a new one
            self.resign()
        return "alone" if now - self._seen_at > STALE_S else "follows"

    def _same(self) -> bool:
        """Tell whether the lock is that which others find under its name."""
        try:
            mine, named = os.fstat(self._fd), os.stat(self._path)
        except OSError:
            return False
        return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)
