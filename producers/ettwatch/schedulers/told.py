"""What a scheduler says of a job, and the names that keep two jobs apart whose ids are the same."""

import time
from collections.abc import Mapping
from typing import NamedTuple

from ettwatch.log import warn


class Told(NamedTuple):
    """What a scheduler tells a process through its environment; None where it says nothing."""

    job: str | None = None
    attempt: int | None = None
    """A counter that all ranks see alike and that never goes back."""
    rank: int | None = None
    world_size: int | None = None
    gpus: int | None = None
    cluster: str | None = None
    labels: Mapping[str, str] = {}
    ids: tuple[str, ...] = ()
    """What people hand to torchrun as its run id, although it does not name the job for good."""


def job_name(cluster: str | None, *parts: str | None, submitted: str | None = None) -> str:
    """Return the name of a scheduler's job: cluster, its own parts, and when it was submitted or its unique id.

    Whoever watches a scheduler from outside must name the jobs in the same way. Parts that are None are left out.
    """
    return "-".join(filter(None, (cluster, *parts, submitted)))


def submit_stamp(env: Mapping[str, str]) -> str | None:
    """Return ETTWATCH_SUBMITTED as a part of a name, such as 20260102T030405Z; None if it is not set.

    It may be seconds since the Unix epoch, or a time in the form of ISO 8601, UTC where it names no zone.
    """
    text = env.get("ETTWATCH_SUBMITTED", "").strip()
    if not text:
        return None
    if text.isdecimal():
        seconds = int(text)
    else:
        from datetime import UTC, datetime

        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            seconds = -1
        else:
            seconds = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    if not 946_684_800 <= seconds < 7_258_118_400:
        warn(
            "setting:ETTWATCH_SUBMITTED",
            f"ETTWATCH_SUBMITTED={text!r} is no time in seconds since the epoch or like 2026-01-02T03:04:05Z; "
            "it is not used",
        )
        return None
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))
