"""What can go wrong with ClickHouse, and how an engine's message becomes one clear line.

StoreError
├── StoreUnavailable      away for a while: try again
├── SchemaRefused         the tables are not those of this version
├── DataFolderInUse       another process has the folder open
└── DataFolderNotWritable the folder cannot be written to
"""

import errno
import re
from typing import Final

__all__ = ["DataFolderInUse", "DataFolderNotWritable", "SchemaRefused", "StoreError", "StoreUnavailable", "store_error"]


class StoreError(Exception):
    """ClickHouse refused or could not do something. The message is one line: what, where, what to do.

    Attributes:
        code: ClickHouse's number of the error, if it gave one.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class StoreUnavailable(StoreError):
    """ClickHouse cannot be reached, or is too busy. The same call may work later, and is safe to repeat."""


class SchemaRefused(StoreError):
    """The database was made by another version of ettwatch."""


class DataFolderInUse(StoreError):
    """Another process has the data folder open; the embedded engine allows one."""


class DataFolderNotWritable(StoreError):
    """The data folder cannot be created or written to."""


# ClickHouse's error numbers. The first group passes by itself: timeouts, load, replicas and connections that are away.
_AWAY: Final = frozenset(
    {159, 202, 209, 210, 225, 236, 241, 242, 252, 279, 285, 286, 289, 319, 394, 425, 439, 473, 999}
)
_DENIED: Final = frozenset({192, 193, 194, 497, 516})
_NO_SPACE: Final = frozenset({243})
_UNKNOWN_TABLE: Final = 60
_UNKNOWN_DATABASE: Final = 81
_READ_ONLY: Final = 164

_NO_SPACE_WORDS: Final = re.compile(r"no space left on device|not enough space|errno: ?28\b|disk quota exceeded", re.I)
_CODE: Final = re.compile(r"\bCode: (\d+)")
_MOST_CHARS: Final = 500


def reason(message: str) -> str:
    """Return an engine's message as one short line: without stack trace, version, URL and repeated wrappings."""
    text = re.split(r"\n?\s*,?\s*Stack trace\b", message)[0]
    text = re.sub(r"\(version [^()]*(\([^()]*\))?[^()]*\)|\(for url [^)]*\)", "", text)
    text = " ".join(text.split())
    caused = re.search(r"\(Caused by \w+\([\"'](?:\w+\(.*?\): )?(.*)[\"']\)\)", text)
    if caused:  # a connection that failed: what the system said, without the ways it went through
        return caused[1]
    parts = re.split(r"Code: \d+\.? (?:DB::(?:Errno)?Exception: )?", text)
    text = re.sub(r"^(DB::\w+: )+", "", parts[-1]).strip(" .:") or "no reason was given"
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 3] + "..."


def code_of(message: str) -> int | None:
    """Return the error number that stands in an engine's message."""
    found = _CODE.search(message)
    return int(found[1]) if found else None


def store_error(what: str, where: str, message: str, *, code: int | None = None, away: bool = False) -> StoreError:
    """Return the error to raise for an engine's message.

    Args:
        what: What was tried, such as ``insert into jobs_log``.
        where: The address or folder.
        message: As the engine or the driver gave it.
        code: ClickHouse's number of the error; looked for in the message if not given.
        away: The connection failed before the engine could say anything.
    """
    code = code if code is not None else code_of(message)
    line = f"cannot {what} at {where}: {reason(message)}"
    if code in _NO_SPACE or _NO_SPACE_WORDS.search(message):
        return StoreError(f"{line}; the disk is full: free some space there", code)
    if code in _AWAY or away:
        return StoreUnavailable(f"{line}; is ClickHouse running and reachable there?" if away else line, code)
    if code in _DENIED:
        return StoreError(f"{line}; check user and password in the address, and the user's rights", code)
    if code == _READ_ONLY:
        return StoreError(f"{line}; this address answers queries but takes no changes", code)
    if code in (_UNKNOWN_TABLE, _UNKNOWN_DATABASE):
        return StoreError(f"{line}; check the name, and whether the migrations were applied there", code)
    return StoreError(line, code)


def os_error(what: str, where: str, error: OSError) -> StoreError:
    """Return the error to raise for a failed system call on this machine (such as the spill file of an insert)."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return store_error(what, where, f"no space left on device ({error.filename or 'temporary folder'})")
    return store_error(what, where, str(error))
