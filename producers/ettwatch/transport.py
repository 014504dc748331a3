"""The way of a line to disk: written before the call returns, kept in memory only while the disk refuses it."""

import errno
import os
import threading
from collections import deque
from itertools import count
from time import monotonic, time_ns
from typing import Final

from ettwatch.backlog import Backlog
from ettwatch.log import trouble, warn
from ettwatch.names import slug
from ettwatch.settings import Settings
from ettwatch.spool import SpoolFile

ROTATE_BYTES: Final = 8 * 1024 * 1024
"""Size at which a file is closed, so that a reader can finish with it, and the next one is begun."""
FIRST_RETRY_S: Final = 0.5
LAST_RETRY_S: Final = 30.0
LOCK_S: Final = 1.0
"""Seconds that a caller waits for another thread that is stuck in a write, before its event is put aside."""
BURST: Final = 500
"""Most kept lines that one call writes after the disk came back."""

_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_files = count()


class FileTransport:
    """Writes lines to files `<job>.<host>.<pid>.<start ms>.<seq>.jsonl` of the spool folder. Never raises."""

    def __init__(self, settings: Settings, job: str, host: str) -> None:
        self._settings = settings
        self._stem = f"{slug(job, 60)}.{slug(host, 60)}"
        self.forget()

    def forget(self) -> None:
        """Begin anew, as if nothing had been written: for a new object, and for the child after a fork."""
        file: SpoolFile | None = getattr(self, "_file", None)
        if file is not None:
            file.close()
        self._file: SpoolFile | None = None
        self._process = f"{self._stem}.{os.getpid()}.{time_ns() // 1_000_000}"
        self._lock = threading.RLock()
        self._inside = False
        self._aside: deque[tuple[bytes, bool]] = deque(maxlen=self._settings.queue_events)
        self._backlog = Backlog(self._settings.queue_events)
        self._retry_s = FIRST_RETRY_S
        self._retry_at = 0.0

    @property
    def waiting(self) -> int:
        """How many lines are kept in memory."""
        return len(self._backlog) + len(self._aside)

    @property
    def dropped(self) -> int:
        """How many lines were dropped since the disk last took one."""
        return self._backlog.dropped

    def put(self, line: bytes, boundary: bool) -> None:
        """Write a line with its newline; keep it for later if that fails. Boundary lines are dropped last."""
        if not self._enter():
            self._aside.append((line, boundary))
            return
        try:
            self._take_in()
            if not (self._drain() and self._write(line)):
                self._backlog.push(line, boundary)
        except Exception as error:
            self._backlog.push(line, boundary)
            trouble("writing to the spool", error)
        except BaseException:  # interrupted: rather twice, under one id, than not at all
            self._backlog.push(line, boundary)
            raise
        finally:
            self._leave()

    def retry(self) -> None:
        """Write what is kept in memory, if it is time to try again."""
        if self.waiting and self._enter():
            try:
                self._take_in()
                self._drain()
            except Exception as error:
                trouble("writing to the spool", error)
            finally:
                self._leave()

    def close(self, budget_s: float) -> bool:
        """Write what is kept, for at most about `budget_s` seconds, close the file, tell whether all is written."""
        deadline = monotonic() + budget_s
        while self.waiting:
            left, self._retry_at = self.waiting, 0.0
            self.retry()
            if self.waiting == left or monotonic() > deadline:
                warn("lost", f"{left} events could not be written to {self._settings.spool}; they are lost at exit")
                break
        if self._enter():
            try:
                self._close_file()
            finally:
                self._leave()
        return not self.waiting

    def _enter(self) -> bool:
        """Take the lock; False if another thread keeps it too long, or this one has it (in a signal handler)."""
        if not self._lock.acquire(timeout=LOCK_S):
            return False
        if self._inside:
            self._lock.release()
            return False
        self._inside = True
        return True

    def _leave(self) -> None:
        self._inside = False
        self._lock.release()

    def _take_in(self) -> None:
        while self._aside:
            self._backlog.push(*self._aside.popleft())

    def _drain(self) -> bool:
        """Write kept lines, the oldest first, a burst at most; tell whether none is left."""
        if not len(self._backlog):
            return True
        if monotonic() < self._retry_at:
            return False
        for _ in range(min(BURST, len(self._backlog))):
            if not self._write(self._backlog.peek()):
                return False
            self._backlog.pop()
        return not len(self._backlog)

    def _write(self, line: bytes) -> bool:
        if self._file is not None and self._file.size + len(line) > ROTATE_BYTES:
            self._close_file()
        try:
            if self._file is not None:
                try:
                    self._file.write(line, self._settings.fsync)
                except OSError as error:
                    if error.errno in _DISK_FULL:
                        raise
                    self._close_file()  # it was removed, or closed by other code: a new one may do
            if self._file is None:
                self._file = SpoolFile(self._settings.spool, f"{self._process}.{next(_files)}")
                self._file.write(line, self._settings.fsync)
        except OSError as error:
            self._failed(error)
            return False
        self._retry_s, self._retry_at = FIRST_RETRY_S, 0.0
        if self._backlog.dropped:
            warn("dropped", f"{self._backlog.dropped} events were dropped while the spool could not be written")
            self._backlog.dropped = 0
        return True

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _failed(self, error: OSError) -> None:
        self._retry_at = monotonic() + self._retry_s
        self._retry_s = min(2 * self._retry_s, LAST_RETRY_S)
        if error.errno not in _DISK_FULL:
            self._close_file()
        warn(
            f"spool:{error.errno}",
            f"events wait in memory: cannot write to the spool folder {self._settings.spool}: {error}; "
            "make room or give another folder by ETTWATCH_SPOOL; training is not affected",
        )
