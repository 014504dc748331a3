"""Fold states made again from the stored events, for jobs whose state was not kept, or not to the end.

The state file is a cache in that sense: when it is lost, or was written by another version of the fold, nothing is
lost with it but time.
"""

from collections.abc import Iterator
from typing import Final

from ettwatch_clickhouse import Store, Table
from ettwatch_core import JobState, Rules, apply, settle
from ettwatch_schemas import DecodeError, Event, decode_event

_SETTLE_EVERY: Final = 500

_SLACK_US: Final = 1_000_000
"""The time of a commit and those of the events are not read from one call of the clock."""


def stored_jobs(store: Store) -> list[str]:
    """Return the names of all jobs of which events are stored.

    Raises:
        StoreError: They cannot be read.
    """
    return [str(row[0]) for row in store.query("SELECT DISTINCT job FROM events ORDER BY job").rows]


def stored_since(store: Store, commit_us: int) -> list[Event]:
    """Return the events that were stored after a commit (µs), and perhaps some from just before it, by job and time.

    Where the process then died before the next commit, the kept states lack them. They come from the files again, but
    perhaps in another order, by which one could be too late that was not when it was stored.

    Raises:
        StoreError: They cannot be read.
    """
    found = store.query(
        "SELECT raw FROM events_log WHERE received > fromUnixTimestamp64Micro({since:Int64}) ORDER BY job, ts, id",
        {"since": commit_us - _SLACK_US},
    )
    return list(_events(found))


def refold(store: Store, job: str, rules: Rules) -> JobState:
    """Return the fold state that the stored events of a job lead to.

    Raises:
        StoreError: They cannot be read.
    """
    state = JobState(job)
    found = store.query("SELECT raw FROM events WHERE job = {job:String} ORDER BY ts, id", {"job": job})
    for number, event in enumerate(_events(found), 1):
        apply(state, event, rules)
        if number % _SETTLE_EVERY == 0:
            settle(state, rules)
    settle(state, rules)
    return state


def _events(found: Table) -> Iterator[Event]:
    for (raw,) in found.rows:
        try:
            yield decode_event(str(raw))
        except DecodeError:
            continue  # stored by a newer ettwatch; this one cannot know what it means
