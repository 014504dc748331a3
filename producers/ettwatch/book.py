"""The book of a job's attempts: so that a number is given once, whoever launches the job again."""

import errno
import fcntl
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from ettwatch.launch import ALONE
from ettwatch.log import trouble
from ettwatch.names import slug

PAGE_BYTES: Final = 512
"""A page is padded to a multiple of this: so the next one takes no more room."""


class Claim(NamedTuple):
    """The number of an attempt that is about to start, and what the book says of the one before."""

    attempt: int
    known: bool
    """The job was launched before from here."""
    last_outcome: str | None
    """How that ended; None if its launcher did not live to write it."""


def claim(spool: str, job: str, least: int) -> Claim:
    """Take the next attempt number of `job`, at least `least`. Raises OSError where the book cannot be kept."""
    with _entry(spool, job) as entry:
        last = entry.get("last")
        known = isinstance(last, int)
        attempt = max(least, last + 1) if isinstance(last, int) else least
        outcome = entry.get("outcome")
        entry.update(job=job, last=attempt, outcome=None, launch=None)
    return Claim(attempt, known, outcome if isinstance(outcome, str) else None)


def enlist(spool: str, job: str, least: int, launch: str) -> int:
    """Return the attempt number of a start of `job` that has no launcher: the same for every rank that names `launch`.

    It is at least `least`, and above that of every start before. Raises OSError where the book cannot be kept.
    """
    with _entry(spool, job) as entry:
        last = entry.get("last")
        # A process by itself begins another attempt when it has told the end of one.
        ended = launch.startswith(ALONE) and entry.get("outcome") is not None
        if isinstance(last, int) and entry.get("launch") == launch and last >= least and not ended:
            return last
        attempt = max(least, last + 1) if isinstance(last, int) else least
        entry.update(job=job, last=attempt, outcome=None, launch=launch)
    return attempt


def conclude(spool: str, job: str, attempt: int, outcome: str) -> None:
    """Write down the largest number used and how it ended. Raises OSError."""
    with _entry(spool, job) as entry:
        last = entry.get("last")
        if not isinstance(last, int) or last <= attempt:
            entry.update(job=job, last=attempt, outcome=outcome)


@contextmanager
def _entry(spool: str, job: str) -> Iterator[dict[str, Any]]:
    """Give what the book says of a job, to be changed. Where it can be read but not written this is warned of."""
    # Not by hashlib, which would cost every start of a trainer a hundredth of a second.
    text = job.encode()
    name = f"{slug(job, 60)}-{zlib.crc32(text):08x}{zlib.crc32(text[::-1]):08x}.json"
    fd, refused = _open(os.path.join(spool, ".attempts"), name)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        before = os.pread(fd, os.fstat(fd).st_size, 0)
        entry = _read(before)
        yield entry
        try:
            if refused is not None:
                raise refused
            _write(fd, before, json.dumps(entry).encode())
        except OSError as error:
            if not before:
                raise
            trouble(f"keeping the numbers of attempts in {spool}", error)
    finally:
        os.close(fd)


def _open(folder: str, name: str) -> tuple[int, OSError | None]:
    """Open the page of a job; with the error, if it can only be read. Raises OSError."""
    path = os.path.join(folder, name)
    try:
        os.makedirs(folder, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), None
    except OSError as error:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC), error
        except OSError:
            raise error from None


def _read(page: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(page)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _write(fd: int, before: bytes, page: bytes) -> None:
    """Write a page over the one before, by one call: killed or out of room in between, no number is forgotten."""
    length = max(len(before), -(-len(page) // PAGE_BYTES) * PAGE_BYTES)
    if os.pwrite(fd, page.ljust(length), 0) < length:
        os.pwrite(fd, before, 0)
        os.ftruncate(fd, len(before))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
