"""The book of a job's attempts: so that a number is given once, whoever launches the job again."""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

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
        entry.update(job=job, last=attempt, outcome=None)
    return Claim(attempt, known, outcome if isinstance(outcome, str) else None)


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
    name = f"{slug(job, 60)}-{hashlib.sha256(job.encode()).hexdigest()[:12]}.json"
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
