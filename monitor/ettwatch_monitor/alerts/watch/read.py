"""Reading what is watched from ClickHouse. Every call may raise StoreError."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from ettwatch_clickhouse import Store
from ettwatch_monitor.alerts.watch.attempt import AttemptFact

__all__ = ["Detail", "read_attempts", "read_details"]

_ATTEMPTS: Final = """
SELECT job, attempt, ifNull(team, ''), ifNull(model, ''), ifNull(cluster, ''), gpus,
    toUnixTimestamp64Micro(start), toUnixTimestamp64Micro(end), open, ifNull(outcome, ''), ifNull(cause, ''),
    toUnixTimestamp64Micro(first_batch), tts_s, ttr_s, stages
FROM attempts
ANY LEFT JOIN (SELECT job, team, model, cluster FROM jobs) AS told USING (job)
WHERE end >= fromUnixTimestamp64Micro({since:Int64}, 'UTC')
"""

_CACHES: Final = """
SELECT job, ifNull(attempt, 0), argMin(ifNull(host, ''), (rank, ts)),
    countIf(JSONExtractString(raw, 'attrs', 'cache') = 'hit'),
    countIf(JSONExtractString(raw, 'attrs', 'cache') = 'miss')
FROM events
WHERE job IN {jobs:Array(String)} AND kind IN ('phase_ended', 'attempt_started', 'training_started')
GROUP BY job, ifNull(attempt, 0)
"""

_STARTS: Final = """
SELECT s.job, s.attempt, s.stage, sum(s.duration_s)
FROM segments AS s
INNER JOIN (
    SELECT job, attempt, first_batch FROM attempts WHERE job IN {jobs:Array(String)}
) AS a USING (job, attempt)
WHERE s.job IN {jobs:Array(String)} AND s.start < a.first_batch
GROUP BY s.job, s.attempt, s.stage
"""

_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Detail:
    """What the tables tell of one attempt on a closer look.

    Attributes:
        host: Of its lowest rank.
        cache_hit: Whether compiled code was found in a cache; None where nobody says.
        startup: Seconds by stage until its first batch.
    """

    host: str | None = None
    cache_hit: bool | None = None
    startup: Mapping[str, float] | None = None


def read_attempts(store: Store, since: int) -> list[AttemptFact]:
    """Return the attempts that ended after an instant (µs), or are open."""
    found = []
    for row in store.query(_ATTEMPTS, {"since": since}).rows:
        job, number, team, model, cluster, gpus, start, end, open_, outcome, cause, batch, tts, ttr, stages = row
        found.append(
            AttemptFact(
                job=str(job),
                number=_int(number),
                # Names come by the hundred thousand, and are few.
                team=sys.intern(str(team)),
                model=sys.intern(str(model)),
                cluster=sys.intern(str(cluster)),
                gpus=max(_int(gpus), 1),
                start=_int(start),
                end=_int(end),
                open=bool(open_),
                outcome=sys.intern(str(outcome)),
                cause=sys.intern(str(cause)),
                first_batch=None if batch is None else _int(batch),
                tts_s=_float(tts),
                ttr_s=_float(ttr),
                stages={
                    sys.intern(str(name)): float(value) for name, value in cast("dict[str, float]", stages).items()
                },
            )
        )
    return found


def read_details(store: Store, jobs: Sequence[str]) -> dict[tuple[str, int], Detail]:
    """Return a closer look at the attempts of some jobs, by job and number."""
    hosts: dict[tuple[str, int], tuple[str | None, bool | None]] = {}
    stages: dict[tuple[str, int], dict[str, float]] = {}
    for first in range(0, len(jobs), _CHUNK):
        some = {"jobs": list(jobs[first : first + _CHUNK])}
        for job, number, host, hits, misses in store.query(_CACHES, some).rows:
            known = _int(hits) + _int(misses)
            hosts[str(job), _int(number)] = (str(host) or None, not _int(misses) if known else None)
        for job, number, stage, seconds in store.query(_STARTS, some).rows:
            stages.setdefault((str(job), _int(number)), {})[str(stage)] = float(cast("float", seconds))
    return {key: Detail(*hosts.get(key, (None, None)), startup=stages.get(key)) for key in hosts.keys() | stages.keys()}


def _int(value: object) -> int:
    return int(cast("int", value))


def _float(value: object) -> float | None:
    return None if value is None else float(cast("float", value))
