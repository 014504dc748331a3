"""How much room the waiting events may take: the oldest progress and heartbeats make way first."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from ettwatch.delivery.load import is_passing
from ettwatch.delivery.waiting import WaitingFile

LOW: Final = 0.9
"""Part of the limit to which room is made, so that it is not made at every look."""


class Room:
    """Keeps the files of a spool folder within `limit` bytes, as far as progress and heartbeats can make room.

    Boundary events stay, whatever room they take. That there is no room is told to the processes of the host by
    a file.
    """

    def __init__(self, folder: str, host: str, limit: int) -> None:
        self._limit = limit
        self._sign = os.path.join(folder, f".kafka.{host}.full")

    @property
    def is_out(self) -> bool:
        """Whether a process of this host has said that there is no room."""
        return os.path.exists(self._sign)

    def keep(self, files: Sequence[WaitingFile], breathe: Callable[[], None]) -> int:
        """Make room where more is taken than the limit allows; return how many events that cost."""
        taken = sum(file.size for file in files)
        dropped = 0
        if taken > self._limit:
            for file in files:
                if taken <= LOW * self._limit:
                    break
                with suppress(OSError):
                    before = file.size
                    dropped += 0 if file.shed or not file.is_left() else shed(file, breathe)
                    taken -= before - file.size
        with suppress(OSError):
            if taken > self._limit:
                os.close(os.open(self._sign, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
            elif taken <= LOW * self._limit:
                os.unlink(self._sign)
        return dropped


def shed(file: WaitingFile, breathe: Callable[[], None]) -> int:
    """Leave only the boundary events that were not sent in a file whose writer is gone; return how many others went.

    Raises OSError; then the file is as it was.
    """
    hidden = os.path.join(os.path.dirname(file.path), f".{file.name}.tmp")
    offset, dropped = file.offset, 0
    try:
        with open(hidden, "wb") as kept:
            while offset < file.size:
                lines = file.read(offset)
                if not lines:
                    break
                boundary = [line.text for line in lines if not is_passing(line.text)]
                kept.writelines(text + b"\n" for text in boundary)
                dropped += len(lines) - len(boundary)
                offset = lines[-1].end
                breathe()
        # The mark of what was sent names the old file by its number, so it says nothing of the new one.
        os.rename(hidden, file.path)
    except OSError:
        with suppress(OSError):
            os.unlink(hidden)
        raise
    stat = os.stat(file.path)
    file.inode, file.size, file.offset, file.shed = stat.st_ino, stat.st_size, 0, True
    return dropped
