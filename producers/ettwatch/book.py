"""The book of a job's attempts: so that a number is given once, whoever launches the job again."""

import fcntl
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ettwatch.launch import ALONE
from ettwatch.names import slug


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
    folder = os.path.join(spool, ".attempts")
    os.makedirs(folder, exist_ok=True)
    # Not by hashlib, which would cost every start of a trainer a hundredth of a second.
    text = job.encode()
    name = f"{slug(job, 60)}-{zlib.crc32(text):08x}{zlib.crc32(text[::-1]):08x}.json"
    with open(os.path.join(folder, name), "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        try:
            entry = json.load(file)
        except ValueError:
            entry = {}
        if not isinstance(entry, dict):
            entry = {}
        yield entry
        file.seek(0)
        file.truncate()
        json.dump(entry, file)
