"""One event file that is followed while it is written, renamed, replaced or left behind."""

import contextlib
import fcntl
import os
import time
from collections import deque
from typing import Final

from ettwatch_app.up.lines import Lines
from ettwatch_app.up.messages import Message, Refusal
from ettwatch_app.up.place import Place, is_written_by_sdk
from ettwatch_app.up.settings import Limits
from ettwatch_app.up.sources import PRINT_BYTES, PackedError, PackedSource, PlainSource, Source
from ettwatch_schemas import MAX_MESSAGE_BYTES, MAX_TS

_RECHECK_S: Final = 2.0
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_NO_LOCKS_S: Final = 600.0
"""Where the file system knows no flock, a writer counts as gone after this silence."""


class SpoolFile:
    """What is known of one file: its place, and the messages read ahead of it.

    Args:
        path: Where it is.
        stat: What the file system says about it.
        place: How far it was read; it moves with each `take`.
        limits: The bounds.
        now_s: A monotonic clock's time.
    """

    def __init__(self, path: str, stat: os.stat_result, place: Place, limits: Limits, now_s: float) -> None:
        self.path = path
        self.name = os.path.basename(path)
        self.key = (stat.st_dev, stat.st_ino)
        self.place = place
        self.buffer: deque[Message] = deque()
        self.buffered = 0
        self.notices: list[str] = []
        self.vanished = False
        self.last_job: str | None = None
        self._reached = 0
        self.by_sdk = is_written_by_sdk(self.name)
        self._limits = limits
        self._packed = not self.name.endswith(".jsonl")
        self._known = place.path == path or place.offset == 0
        self._stat = (stat.st_size, stat.st_mtime_ns)
        # How long it has lain there already is known from its time only: later changes are seen.
        self._changed_s = now_s - max(0.0, time.time() - stat.st_mtime)
        self._was_locked = False
        self._done: tuple[int, int] | None = None  # as the file was when nothing more could be read of it
        self._check_s = 0.0
        self._lines = Lines(limits.keep_letter_bytes)
        self._first = b""
        self._print = (b"", b"", 0)
        self._source: PackedSource | None = None
        self._trouble = ""
        self._committed = place.mark
        self._oldest: tuple[int, dict[str, int]] = (-1, {})  # at which offset it was made

    @property
    def size(self) -> int:
        """Its size in bytes, when last looked at."""
        return self._stat[0]

    def saw(self, path: str, stat: os.stat_result, now_s: float) -> None:
        """Take in what a look at the folder showed."""
        self.vanished = False
        if path != self.path:
            self.path, self.name = path, os.path.basename(path)
            self.by_sdk = is_written_by_sdk(self.name)
        self.place.path = path
        if (stat.st_size, stat.st_mtime_ns) != self._stat:
            self._stat = (stat.st_size, stat.st_mtime_ns)
            self._changed_s = now_s
            self._check_s = 0.0

    def wants_reading(self, now_s: float) -> bool:
        """Tell whether there may be something to read now."""
        if self.buffer or self.vanished or now_s < self._check_s:
            return False
        return self._lines.skipping or self._done != self._stat or self._lines.partial

    def fill(self, size: int, latest: int, now_s: float, *, once: bool) -> None:
        """Read and decode about `size` bytes of whole lines into the buffer.

        Args:
            size: How much to read; one longer line is read as a whole, up to the limit of a message.
            latest: Events later than this (µs) are refused.
            now_s: A monotonic clock's time.
            once: Nobody will append in this run, except those who hold the file locked.
        """
        self._check_s = 0.0
        try:
            fd = os.open(self.path, _FLAGS)
        except OSError as e:
            self._failed(e, now_s)
            return
        seen = self._stat
        try:
            gone = self._writer_gone(fd, now_s, once)
            stat = os.fstat(fd)
            if (stat.st_dev, stat.st_ino) != self.key:
                self._check_s = now_s + self._limits.poll_s
                return  # replaced since the last look at the folder: the next one finds it
            self._verify(fd, stat)
            self._rewind(fd, stat.st_size)
            seen = (stat.st_size, stat.st_mtime_ns)
            if self._packed and (self.place.whole or not gone):
                self._done = seen if self.place.whole else None
                self._lines.restart()
                self._check_s = 0.0 if self.place.whole else now_s + _RECHECK_S
                return
            self._done = None
            settled = gone and (once or self._packed or now_s - self._changed_s >= self._limits.settle_s)
            if self._read(self._open(fd), size, latest, gone, settled):
                self._done = seen
                if self._lines.partial:
                    self._check_s = now_s + _RECHECK_S
                self.close()
            self._trouble = ""
        except PackedError as e:
            self._give_up(e, seen)
        except OSError as e:
            self._failed(e, now_s)
        finally:
            os.close(fd)

    def take(self) -> Message:
        """Return the next message of the buffer and move the place behind it."""
        message = self.buffer.popleft()
        self.buffered -= len(message.raw)
        if message.job is not None:
            self.last_job, self._reached = message.job, message.high
        place = self.place
        place.offset, place.line = message.end, message.number
        if self._packed:
            place.head, place.tail, place.size = self._print
            place.whole = self._done is not None and not self.buffer
        else:
            place.head = self._first[: min(PRINT_BYTES, message.end)]
            place.tail = message.raw[-PRINT_BYTES:] if message.tail is None else message.tail
        return message

    def oldest(self) -> dict[str, int]:
        """Return the earliest time (µs) by job of what is in the buffer."""
        if self._oldest[0] != self.place.offset:
            lows: dict[str, int] = {}
            for message in self.buffer:
                if message.job is not None and message.low < lows.get(message.job, MAX_TS + 1):
                    lows[message.job] = message.low
            self._oldest = (self.place.offset, lows)
        return self._oldest[1]

    @property
    def front(self) -> int:
        """Where in event time (µs) its unread events begin, as far as it is written in order; 0 if that is unknown."""
        return min(self.oldest().values(), default=self._reached)

    @property
    def dirty(self) -> bool:
        """Whether the place has moved since the last commit."""
        return self.place.mark != self._committed

    def committed(self) -> None:
        """Take note that the place is safe."""
        self._committed = self.place.mark

    def remove_if_done(self, now_s: float) -> bool:
        """Remove the file if it has an SDK's name, its writer is gone, and all of it is safe; tell whether it was."""
        idle = not self.buffer and not self.dirty and self._done == self._stat and self.place.offset == self.size
        if not (self.by_sdk and idle and not self._packed) or self.vanished or now_s < self._check_s:
            return False
        # A lock that was held and is free again proves that the writer is dead. Without that, the file may be a
        # copy that is being made, whose next bytes are still to come.
        ended = self._was_locked and self.place.tail.endswith(b"\n")
        if now_s - self._changed_s < (self._limits.quiet_s if ended else self._limits.settle_s):
            return False
        self._check_s = now_s + _RECHECK_S
        with contextlib.suppress(OSError):
            fd = os.open(self.path, _FLAGS)
            try:
                if not self._writer_gone(fd, now_s, once=False):
                    return False
                stat = os.fstat(fd)
                same = (stat.st_dev, stat.st_ino) == self.key and (stat.st_size, stat.st_mtime_ns) == self._stat
                if same and stat.st_size == self.place.offset:
                    os.unlink(self.path)
                    return True
            finally:
                os.close(fd)
        return False

    def close(self) -> None:
        """Let go of the file."""
        if self._source is not None:
            self._source.close()
            self._source = None

    # The writer holds an flock for as long as it lives. What nobody holds may still be copied in, whatever its name:
    # it counts as complete when it has not changed for a while.
    def _writer_gone(self, fd: int, now_s: float, once: bool) -> bool:
        quiet_s = now_s - self._changed_s
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_UN)
        except BlockingIOError:
            self._was_locked = True
            return False
        except OSError:
            return once or quiet_s >= _NO_LOCKS_S
        return once or quiet_s >= self._limits.quiet_s

    def _verify(self, fd: int, stat: os.stat_result) -> None:
        place = self.place
        self._first = os.pread(fd, PRINT_BYTES, 0)
        if self._packed:
            end = os.pread(fd, PRINT_BYTES, max(0, stat.st_size - PRINT_BYTES))
            self._print = (self._first, end, stat.st_size)
            same = place.size == 0 or self._print == (place.head, place.tail, place.size)
        else:
            before = os.pread(fd, len(place.tail), place.offset - len(place.tail))
            same = self._first.startswith(place.head) and before == place.tail
        if not same:
            if self._known:
                what = f"cut from {place.offset} to {stat.st_size} bytes" if stat.st_size < place.offset else "replaced"
                self.notices.append(f"{self.name}: {what} in place; reading it from its beginning")
            place.restart()
            self.close()
            self._lines.restart()
        self._known = True

    def _rewind(self, fd: int, size: int) -> None:
        """Go back to the beginning of the last line if it was handled without its newline and has grown since."""
        place = self.place
        offset = place.offset
        if self._packed or self._lines.skipping or size <= offset or not place.tail or place.tail.endswith(b"\n"):
            return
        if os.pread(fd, 2, offset).startswith((b"\n", b"\r\n")):
            return  # it was whole
        before = os.pread(fd, min(offset, MAX_MESSAGE_BYTES), max(0, offset - MAX_MESSAGE_BYTES))
        newline = before.rfind(b"\n")
        begin = offset - len(before) + newline + 1
        if newline < 0 and begin > 0:
            return  # too long to be an event
        place.offset, place.line = begin, place.line - 1
        place.head = place.head[:begin]
        place.tail = os.pread(fd, min(begin, PRINT_BYTES), max(0, begin - PRINT_BYTES))

    def _open(self, fd: int) -> Source:
        if not self._packed:
            return PlainSource(fd)
        if self._source is None:
            self._source = PackedSource(os.dup(fd), self.name)
        return self._source

    def _read(self, source: Source, size: int, latest: int, gone: bool, settled: bool) -> bool:
        """Fill the buffer; tell whether that was all there is."""
        messages, over = self._lines.read(source, self.place, size, latest, final=gone, settled=settled)
        for message in messages:
            self._keep(message)
        if self._packed and over and not self.buffer:
            self.place.head, self.place.tail, self.place.size = self._print
            self.place.whole = True
        return over

    def _keep(self, message: Message) -> None:
        self._oldest = (-1, {})
        self.buffer.append(message)
        self.buffered += len(message.raw)

    def _give_up(self, error: PackedError, seen: tuple[int, int]) -> None:
        message = Message(self.place.offset, self.place.offset, self.place.line + 1, b"")
        message.refusals.append(Refusal("damaged", f"{self.name}: {error}"))
        self._keep(message)
        self._done = seen
        self._lines.restart()
        self.close()

    def _failed(self, error: OSError, now_s: float) -> None:
        self._check_s = now_s + 5 * _RECHECK_S
        told = f"{self.name}: cannot be read: {error.strerror or error}"
        if told != self._trouble and not isinstance(error, FileNotFoundError):
            self.notices.append(told)
        self._trouble = told
