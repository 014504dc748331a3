"""The files of a spool folder that wait to be sent, and how far each of them has been."""

import errno
import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

CHUNK: Final = 64 * 1024
"""Bytes read at once: a thousandth of a second of a trainer's interpreter, about."""
MAX_LINE: Final = 1024 * 1024
"""A line that is longer is no event of ours."""
FOREIGN_S: Final = 600.0
"""Seconds after which files of another host, in a folder that hosts share, count as left behind."""

_NAME: Final = re.compile(r"[^.]+\.([^.]+)\.(\d+)\.(\d{12,})\.(\d+)\.kafka\.jsonl")


class Line(NamedTuple):
    """An event as it stands in a file, without its newline, and the offset behind it."""

    text: bytes
    end: int


class WaitingFile:
    """One file, of which everything before `offset` was sent. That is kept beside it, in `.<name>.sent`."""

    __slots__ = ("gone", "inode", "name", "offset", "order", "path", "shed", "size")

    def __init__(self, folder: str, name: str, stat: os.stat_result, order: tuple[int, int, int]) -> None:
        self.name = name
        self.path = os.path.join(folder, name)
        self.inode = stat.st_ino
        self.size = stat.st_size
        self.order = order
        self.gone = False
        """Its writer is gone: it grows no more."""
        self.shed = False
        """Only boundary events are left in it."""
        self.offset = self._read_mark()

    @property
    def mark(self) -> str:
        """The path of the file that says how much was sent."""
        return os.path.join(os.path.dirname(self.path), f".{self.name}.sent")

    def _read_mark(self) -> int:
        with suppress(OSError, ValueError), open(self.mark, encoding="ascii") as file:
            inode, offset = file.read(64).split()
            if int(inode) == self.inode and 0 <= int(offset) <= self.size:
                return int(offset)
        return 0

    def advance(self, offset: int) -> None:
        """Take note that everything before `offset` was sent. Where that cannot be written, it is sent twice later."""
        self.offset = offset
        with suppress(OSError):
            fd = os.open(self.mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            try:
                os.pwrite(fd, b"%020d %020d\n" % (self.inode, offset), 0)
            finally:
                os.close(fd)

    def read(self, offset: int) -> list[Line]:
        """Return whole lines from `offset` on, about a chunk of them. A last one that was cut off is left out.

        Raises OSError.
        """
        fd = self._open()
        try:
            data = os.pread(fd, CHUNK, offset)
            while data and b"\n" not in data and len(data) < MAX_LINE:
                more = os.pread(fd, CHUNK, offset + len(data))
                if not more:
                    break
                data += more
        finally:
            os.close(fd)
        lines = []
        for text in data.split(b"\n")[:-1]:
            offset += len(text) + 1
            lines.append(Line(text, offset))
        if not lines and len(data) >= MAX_LINE:
            lines.append(Line(data, offset + len(data)))  # not one event: it will be found damaged
        return lines

    def is_left(self) -> bool:
        """Tell whether its writer is gone: then it grows no more. Raises OSError."""
        if not self.gone:
            fd = self._open()
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.size = os.fstat(fd).st_size
            except BlockingIOError:
                return False
            finally:
                os.close(fd)
            self.gone = True
        return True

    def remove(self) -> None:
        """Remove the file: all of it was sent. Raises OSError."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        with suppress(OSError):
            os.unlink(self.mark)

    def _open(self) -> int:
        # For writing, too: some file systems give their locks only so.
        fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        if os.fstat(fd).st_ino != self.inode:
            os.close(fd)
            raise OSError(errno.ESTALE, "the file was replaced", self.path)
        return fd


class WaitingFolder:
    """What waits in a spool folder, for one thread."""

    def __init__(self, folder: str, host: str) -> None:
        self.folder = folder
        self._host = host
        self._files: dict[tuple[str, int], WaitingFile] = {}

    def look(self, own: str | None = None) -> list[WaitingFile]:
        """Return the files that wait, in the order in which they were begun; only those that begin with `own` if given.

        Raises OSError.
        """
        there = {}
        for entry in self._entries():
            match = _NAME.fullmatch(entry.name)
            if match is None or (own is not None and not entry.name.startswith(own)):
                continue
            try:
                stat = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # sent and removed meanwhile
            if match[1] != self._host and time.time() - stat.st_mtime < FOREIGN_S:
                continue
            key = (entry.name, stat.st_ino)
            file = self._files.get(key)
            if file is None:
                order = (int(match[3]), int(match[2]), int(match[4]))
                file = WaitingFile(self.folder, entry.name, stat, order)
            file.size = stat.st_size
            there[key] = file
        self._files = there
        return sorted(there.values(), key=lambda file: file.order)

    def forget(self) -> None:
        """Forget what was seen: others may have sent some of it when it is looked at again."""
        self._files = {}

    def sweep(self) -> None:
        """Remove marks whose files are not there. Raises OSError."""
        names = {entry.name for entry in self._entries()}
        for name in names:
            if name.startswith(".") and name.endswith(".kafka.jsonl.sent") and name[1:-5] not in names:
                with suppress(OSError):
                    os.unlink(os.path.join(self.folder, name))

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.folder) as entries:
                yield from entries
        except FileNotFoundError:
            return
