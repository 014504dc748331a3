"""The way of a line to disk: written before the call returns, kept in memory only while the disk refuses it."""

import errno
import os
import threading
from collections import deque
from contextlib import suppress
from itertools import count
from time import monotonic, time_ns
from typing import Final

from ettwatch.backlog import Backlog
from ettwatch.drops import Drops
from ettwatch.log import pass_on, trouble, warn
from ettwatch.names import slug
from ettwatch.settings import Settings
from ettwatch.spool import SpoolFile

ROTATE_BYTES: Final = 8 * 1024 * 1024
"""Size at which a file is closed, so that a reader can finish with it, and the next one is begun."""
KAFKA_ROTATE_BYTES: Final = 1024 * 1024
"""The same of files whose events go to Kafka: they are removed as a whole, so they are kept small."""
KAFKA_ENDING: Final = ".kafka"
"""What the name of such a file ends with, before its suffix."""
FIRST_RETRY_S: Final = 0.5
LAST_RETRY_S: Final = 30.0
LOCK_S: Final = 1.0
"""Seconds that a caller waits for another thread that is stuck in a write, before its event is put aside."""
BURST: Final = 500
"""Most kept lines that one call writes after the disk came back."""

_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_files = count()


class FileTransport:
    """Writes lines to files `<job>.<host>.<pid>.<start ms>.<seq>.jsonl` of the spool folder. Never raises.

    Files whose events go to Kafka end in `.kafka.jsonl`: who has sent them removes them.
    """

    def __init__(self, settings: Settings, job: str, host: str) -> None:
        self._settings = settings
        self._stem = f"{slug(job, 60)}.{slug(host, 60)}"
        self._ending = KAFKA_ENDING if settings.brokers else ""
        self._rotate_bytes = ROTATE_BYTES
        if settings.brokers:
            self._rotate_bytes = min(KAFKA_ROTATE_BYTES, settings.spool_bytes // 8)
        self._file: SpoolFile | None = None
        self.forget()

    def forget(self) -> None:
        """Begin anew, as if nothing had been written: for a new object, and for the child after a fork."""
        self._close_file()
        self.process = f"{self._stem}.{os.getpid()}.{time_ns() // 1_000_000}"
        """What the names of its files begin with."""
        self.drops = Drops()
        self.sheds = False
        """Whether the spool folder has all the room it may take: then progress and heartbeats are dropped."""
        self._lock = threading.RLock()
        self._inside = False
        self._stuck = False
        self._order = count()
        self._aside: dict[bool, deque[tuple[int, bytes]]] = {True: deque(), False: deque()}
        """Boundary lines and others that came while the lock was not to be had, each with its place in the order."""
        self._backlog = Backlog(self._settings.queue_events)
        self._retry_s = FIRST_RETRY_S
        self._retry_at = 0.0

    @property
    def waiting(self) -> int:
        """How many lines are kept in memory."""
        return len(self._backlog) + len(self._aside[True]) + len(self._aside[False])

    def put(self, line: bytes, boundary: bool) -> None:
        """Write a line with its newline; keep it for later if that fails. Boundary lines are dropped last."""
        if self.sheds and not boundary:
            self.drops.add("spool_full")
            return
        if not self._enter():
            self._put_aside(line, boundary)
            return
        try:
            if (self._is_clear() or self._drain()) and self._write(line):
                return
            if boundary and self._backlog.is_pressed:  # before one of these is lost, the disk is asked once more
                self._retry_at = 0.0
                if self._drain() and self._write(line):
                    return
            self._keep(line, boundary)
        except Exception as error:
            self._keep(line, boundary)
            trouble("writing to the spool", error)
        except BaseException:  # interrupted: rather twice, under one id, than not at all
            self._keep(line, boundary)
            raise
        finally:
            self._inside = False  # as `_leave` does
            self._stuck = False
            self._lock.release()

    def retry(self) -> None:
        """Write what is kept in memory, if it is time to try again."""
        if self.waiting and self._enter():
            try:
                self._drain()
            except Exception as error:
                trouble("writing to the spool", error)
            finally:
                self._leave()

    def oldest(self, limit: int) -> list[tuple[int, bytes]]:
        """Return the oldest lines in memory, at most `limit`, with their numbers; for who can send them unwritten."""
        if not self.waiting or not self._enter():
            return []
        try:
            self._take_in()
            return self._backlog.oldest(limit)
        finally:
            self._leave()

    def sent(self, last: int) -> None:
        """Forget the lines in memory up to number `last`."""
        if self._enter():
            try:
                self._backlog.discard(last)
            finally:
                self._leave()

    def rotate(self, path: str, size: int) -> None:
        """Close the file if it is this one and still of this size; the next event begins a new one."""
        if self._file is not None and self._file.path == path and self._enter():
            try:
                if self._file is not None and (self._file.path, self._file.size) == (path, size):
                    self._close_file()
            finally:
                self._leave()

    def close(self, budget_s: float) -> bool:
        """Write what is kept, for at most about `budget_s` seconds, close the file, tell whether all is written."""
        deadline = monotonic() + budget_s
        while self.waiting:
            left, self._retry_at = self.waiting, 0.0
            self.retry()
            if self.waiting == left or monotonic() > deadline:
                break
        if self._enter():
            try:
                self._close_file()
            finally:
                self._leave()
        return not self.waiting

    def give_up(self) -> None:
        """Take leave of what is still in memory when the process ends."""
        left = self.waiting
        if left:
            self.drops.count("exit", left)
            warn("lost", f"{left} events could not be written to {self._settings.spool}; they are lost at exit")

    def _enter(self) -> bool:
        """Take the lock; False if another thread keeps it too long, or this one has it (in a signal handler)."""
        try:
            if not self._lock.acquire(False) and (self._stuck or not self._lock.acquire(timeout=LOCK_S)):
                self._stuck = True  # whoever comes next does not wait for the same write
                return False
        except BaseException:  # a signal handler raised: between taking the lock and returning from that
            if not self._inside:
                with suppress(RuntimeError):  # it was not taken
                    self._lock.release()
            raise
        if self._inside:  # a signal handler, or a finalizer, in the middle of a write by this very thread
            self._lock.release()
            return False
        self._inside = True
        return True

    def _leave(self) -> None:
        self._inside = False
        self._stuck = False
        self._lock.release()

    def _put_aside(self, line: bytes, boundary: bool) -> None:
        """Keep a line without the lock. As in the backlog, boundary lines are dropped last."""
        self._aside[boundary].append((next(self._order), line))
        if len(self._aside[True]) + len(self._aside[False]) > self._settings.queue_events:
            with suppress(IndexError):  # somebody with the lock has just taken them in
                (self._aside[False] or self._aside[True]).popleft()
                self.drops.add("queue_full")

    def _is_clear(self) -> bool:
        return not self._backlog.filled and not self._aside[True] and not self._aside[False]

    def _keep(self, line: bytes, boundary: bool) -> None:
        self.drops.add("queue_full", self._backlog.push(line, boundary))

    def _take_in(self) -> None:
        with suppress(IndexError):  # without the lock somebody may drop one: the rest is taken in next time
            while self._aside[True] or self._aside[False]:
                heads = [(lines[0][0], boundary) for boundary, lines in self._aside.items() if lines]
                boundary = min(heads)[1]
                self._keep(self._aside[boundary].popleft()[1], boundary)

    def _drain(self) -> bool:
        """Write kept lines, the oldest first, a burst at most; tell whether none is left."""
        self._take_in()
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
        file = self._file
        if file is not None and file.size + len(line) > self._rotate_bytes:
            self._close_file()
            file = None
        try:
            if file is not None:
                try:
                    file.write(line, self._settings.fsync)
                except OSError as error:
                    if error.errno in _DISK_FULL:
                        raise
                    pass_on(error)
                    self._close_file()  # it was removed, or closed by other code: a new one may do
                    file = None
            if file is None:
                self._file = SpoolFile(self._settings.spool, f"{self.process}.{next(_files)}{self._ending}")
                self._file.write(line, self._settings.fsync)
        except OSError as error:
            self._failed(error)
            return False
        if self._retry_at:
            self._retry_s, self._retry_at = FIRST_RETRY_S, 0.0
        return True

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _failed(self, error: OSError) -> None:
        pass_on(error)
        self._retry_at = monotonic() + self._retry_s
        self._retry_s = min(2 * self._retry_s, LAST_RETRY_S)
        if error.errno not in _DISK_FULL:
            self._close_file()
        warn(
            f"spool:{error.errno}",
            f"events wait in memory: cannot write to the spool folder {self._settings.spool}: {error}; "
            "make room or give another folder by ETTWATCH_SPOOL; training is not affected",
        )
