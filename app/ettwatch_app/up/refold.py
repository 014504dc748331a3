"""Fold states made again from the stored events, for jobs whose state was not kept.

The state file is a cache in that sense: when it is lost, or was written by another version of the fold, nothing is
lost with it but time.
"""

from ettwatch_clickhouse import Store
from ettwatch_core import JobState, Rules, apply, settle
from ettwatch_schemas import DecodeError, decode_event

_SETTLE_EVERY = 500


def stored_jobs(store: Store) -> list[str]:
    """Return the names of all jobs of which events are stored.

    Raises:
        StoreError: They cannot be read.
    """
    return [str(row[0]) for row in store.query("SELECT DISTINCT job FROM events ORDER BY job").rows]


def refold(store: Store, job: str, rules: Rules) -> JobState:
    """Return the fold state that the stored events of a job lead to.

    Raises:
        StoreError: They cannot be read.
    """
    state = JobState(job)
    found = store.query("SELECT raw FROM events WHERE job = {job:String} ORDER BY ts, id", {"job": job})
    for number, (raw,) in enumerate(found.rows, 1):
        try:
            apply(state, decode_event(str(raw)), rules)
        except DecodeError:
            continue  # stored by a newer ettwatch; this one cannot know what it means
        if number % _SETTLE_EVERY == 0:
            settle(state, rules)
    settle(state, rules)
    return state
