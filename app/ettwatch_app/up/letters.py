"""The dead letters: every refused line or event, with where it came from, why, and its bytes."""

import base64
import json
import os
from pathlib import Path
from typing import NamedTuple

from ettwatch_app.up.messages import Message, Refusal


class Letter(NamedTuple):
    """One refusal with its origin."""

    path: str
    message: Message
    refusal: Refusal


class DeadLetters:
    """Appends to `rejected.jsonl`.

    What is appended counts only once its length is committed: at the start the file is cut back to the committed
    length, so that lines that are read again after a crash stand in it once.

    Args:
        path: The file.
        length: Its committed length in bytes; None if nothing is known of it, and all of it is kept.
        rotate_at: From this size on it becomes `rejected.jsonl.1`, replacing an older one, and a new one begins.
        keep: Most of a line's bytes that is kept.
    """

    def __init__(self, path: Path, length: int | None, *, rotate_at: int, keep: int) -> None:
        self._path = path
        self._rotate_at = rotate_at
        self._keep = keep
        self._fd = self._open()
        present = os.fstat(self._fd).st_size
        self._length = present if length is None else min(length, present)
        os.ftruncate(self._fd, self._length)
        self._pending = bytearray()
        self._unsynced = False

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)  # it quotes input

    @property
    def length(self) -> int:
        """Its length in bytes, without what is pending."""
        return self._length

    @property
    def pending(self) -> int:
        """Bytes that are not on the disk yet."""
        return len(self._pending)

    def add(self, letter: Letter, now_us: int) -> None:
        """Take one refusal, made at `now_us`; `settle` writes it."""
        self._pending += _line(letter, now_us, self._keep)

    def settle(self) -> int:
        """Bring everything onto the disk; return the length to commit.

        Raises:
            OSError: The disk refuses it; nothing is lost, call again.
        """
        self._look()
        while self._pending:
            self._unsynced = True
            written = os.pwrite(self._fd, self._pending, self._length)
            self._length += written
            del self._pending[:written]
        if self._unsynced:
            os.fsync(self._fd)
            self._unsynced = False
        if self._length >= self._rotate_at:
            # Before the commit: a crash between the two finds no file, and a committed length that is longer than it.
            self._path.replace(self._path.with_name(self._path.name + ".1"))
            os.close(self._fd)
            self._fd = self._open()
            self._length = 0
        return self._length

    def _look(self) -> None:
        # People remove the file, or empty it, when they have read it.
        try:
            stat = os.stat(self._path)
        except FileNotFoundError:
            stat = None
        mine = os.fstat(self._fd)
        if stat is None or (stat.st_dev, stat.st_ino) != (mine.st_dev, mine.st_ino):
            os.close(self._fd)
            self._fd = self._open()
            self._length = os.fstat(self._fd).st_size
        else:
            self._length = min(self._length, stat.st_size)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def _line(letter: Letter, now_us: int, keep: int) -> bytes:
    message, refusal = letter.message, letter.refusal
    told: dict[str, object] = {
        "at": now_us,
        "file": letter.path,
        "line": message.number,
        "offset": message.start,
        "index": refusal.index,
        "code": refusal.code,
        "reason": refusal.reason,
        "field": refusal.field,
        "value": refusal.value,
        "bytes": message.end - message.start,
    }
    kept = message.raw[:keep].rstrip(b"\r\n")
    try:
        told["raw"] = kept.decode()
    except UnicodeDecodeError:
        told["raw_base64"] = base64.b64encode(kept).decode()
    return json.dumps({k: v for k, v in told.items() if v is not None}, ensure_ascii=False).encode() + b"\n"
