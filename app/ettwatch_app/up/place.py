"""The place in an event file: how far it was read, and how to know the file again."""

import re
from dataclasses import dataclass
from typing import Final

SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst")
"""Names of event files end like this; names that begin with a dot are drafts of their writers."""

_WRITTEN_BY_SDK: Final = re.compile(r".+\.\d+\.\d{12,}\.\d+\.jsonl")


@dataclass(slots=True)
class Place:
    """How far one file was read.

    The device and inode find the file again after a rename; `head` and `tail` prove that it is the same file, since
    inodes are used again.

    Attributes:
        id: Its row in the state file; None before the first commit.
        path: Where the file was last seen.
        device: Its device number.
        inode: Its inode number.
        offset: Everything before this byte has been handled (of packed files: of what is packed).
        line: Number of the last line before it.
        head: The first bytes of the file.
        tail: The last bytes before `offset` (of packed files: of the file).
        size: Of packed files, their size; else 0.
        whole: Of packed files: everything in it has been handled.
        gone_us: When the file was found to be gone (µs); None while it is there.
    """

    id: int | None
    path: str
    device: int
    inode: int
    offset: int = 0
    line: int = 0
    head: bytes = b""
    tail: bytes = b""
    size: int = 0
    whole: bool = False
    gone_us: int | None = None

    @property
    def mark(self) -> tuple[int, bool, str]:
        """What has to be written again when it changes."""
        return self.offset, self.whole, self.path

    def restart(self) -> None:
        """Go back to the beginning of the file."""
        self.offset = self.line = self.size = 0
        self.head = self.tail = b""
        self.whole = False


def is_event_file(name: str) -> bool:
    """Tell whether a file of this name in a spool folder is read."""
    return name.endswith(SUFFIXES) and not name.startswith(".")


def is_written_by_sdk(name: str) -> bool:
    """Tell whether the name is one that the SDK gives; such a file is removed when it is done with."""
    return _WRITTEN_BY_SDK.fullmatch(name) is not None
