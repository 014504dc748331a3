"""Put each line into the bucket of its job, at the cost of a search in its bytes where that is safe."""

import re
from collections.abc import Iterable

from ettwatch_app.replay.problems import Problems
from ettwatch_app.replay.spill import Spill
from ettwatch_schemas import decode_message

_names = re.compile(rb'"job"\s*:\s*"([^"\\]*)"').findall
MAX_LEVEL = 6
"""How often a bucket may be split again: each level takes eight more bits of the hash of the job."""


def job_in(line: bytes) -> bytes | None:
    """Find the job of a line without decoding it, or None where only decoding can tell.

    Without a backslash in the line, and with every `"job"` in it a key of one and the same text, no event of
    the line can belong to another job: `"job"` inside a text would need a backslash.
    """
    found: list[bytes] = _names(line)
    if not found or b"\\" in line or line.count(b'"job"') != len(found):
        return None
    job = found[0]
    if len(found) > 1 and any(other != job for other in found):
        return None
    return job


def partition(spill: Spill, places: Iterable[int], lines: Iterable[bytes], level: int, problems: Problems) -> None:
    """Put each of `lines` into its bucket of `spill`; what must be decoded for that and cannot is a problem.

    Raises OSError when the temporary file cannot take more.
    """
    for place, line in zip(places, lines, strict=True):
        if not line or line.isspace():
            continue
        job = job_in(line)
        if job is not None:
            spill.add(hash(job), level, place, line)
            continue
        events, errors = decode_message(line)
        if events:
            # The events of an array are of one job. What is wrong with others is told when the bucket is read.
            spill.add(hash(events[0].job.encode()), level, place, line)
            continue
        for error in errors:
            problems.add(place, error.code, error)
