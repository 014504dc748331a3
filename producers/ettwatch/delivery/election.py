"""Which process of a host sends what waits in a spool folder: one at a time, whoever it is."""

import fcntl
import os
from time import monotonic
from typing import Final, Literal

from ettwatch.descriptors import Descriptor

STALE_S: Final = 60.0
"""Seconds after which a leader that gives no sign of life, as one that was stopped, is not waited for."""

Role = Literal["leads", "follows", "alone"]
"""`leads`: it sends for all. `follows`: another does. `alone`: it sends its own, because nobody else will."""


class Election:
    """A lock in the spool folder, and its time as the leader's sign of life. For one thread."""

    def __init__(self, folder: str, host: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, f".kafka.{host}.lock")
        self._lock: Descriptor | None = None
        self._leads = False
        self._seen = 0
        self._seen_at = monotonic()

    def role(self) -> Role:
        """Take the lead if nobody has it, show that the leader lives, and return the role of this process.

        Raises OSError where the folder cannot be written.
        """
        if self._lock is not None and not self._lock.is_at(self._path):
            self.resign()  # somebody removed it, so others may have another; or other code closed it
        if self._leads and self._lock is not None:
            os.utime(self._lock.number)
            return "leads"
        if self._lock is None:
            os.makedirs(self._folder, exist_ok=True)
            self._lock = Descriptor(self._path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._lock.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._follow(self._lock)
        except OSError:
            return "alone"  # a file system without locks
        if not self._lock.is_at(self._path):
            self.resign()
            return "alone"
        self._leads = True
        os.utime(self._lock.number)
        return "leads"

    def resign(self) -> None:
        """Leave the lead to others."""
        lock, self._lock, self._leads = self._lock, None, False
        if lock is not None:
            lock.close()

    def _follow(self, lock: Descriptor) -> Role:
        seen = lock.look().st_mtime_ns
        now = monotonic()
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        return "alone" if now - self._seen_at > STALE_S else "follows"
