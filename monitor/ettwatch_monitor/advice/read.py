"""A fleet out of ClickHouse: the raw events of its jobs, of a sample where there are too many."""

from collections import defaultdict
from typing import Final, NamedTuple, cast

from ettwatch_clickhouse import Store
from ettwatch_monitor.advice.fleet import Fleet
from ettwatch_schemas import DecodeError, Event, decode_event

MOST_EVENTS: Final = 400_000
"""How many events are looked at; with more, a sample of the jobs stands for all."""
_AT_ONCE: Final = 200

_JOBS: Final = """
SELECT job, ifNull(team, ''), events, gpu_e2e_s, toUnixTimestamp64Micro(t0), toUnixTimestamp64Micro(t1) FROM jobs
WHERE t0 < fromUnixTimestamp64Micro({until:Int64}) AND t1 > fromUnixTimestamp64Micro({since:Int64})
AND ({team:String} = '' OR team = {team:String}) AND ({model:String} = '' OR model = {model:String})
AND ({cluster:String} = '' OR cluster = {cluster:String}) AND attempts > 0
ORDER BY cityHash64(job)
"""
_EVENTS: Final = "SELECT job, raw FROM events WHERE job IN {jobs:Array(String)}"


class Sample(NamedTuple):
    """Which jobs were looked at.

    Attributes:
        jobs: How many.
        of_jobs: How many there are.
        events: Their events.
        share_pct: Their share of the GPU time of all.
    """

    jobs: int
    of_jobs: int
    events: int
    share_pct: float


def read_fleet(
    store: Store,
    since: int,
    until: int,
    *,
    team: str | None = None,
    model: str | None = None,
    cluster: str | None = None,
    most: int = MOST_EVENTS,
) -> tuple[Fleet, Sample]:
    """Read the jobs that had time between two times (µs). Raises StoreError.

    A job counts with the share of its time that lies there. Where there are more than `most` events, jobs are chosen
    by a hash of their names, and stand for the others of their team by GPU time.
    """
    rows = store.query(
        _JOBS,
        {"since": since, "until": until, "team": team or "", "model": model or "", "cluster": cluster or ""},
    ).rows
    weights: dict[str, float] = {}
    teams: dict[str, str] = {}
    gpu_s: dict[str, float] = {}
    of_team: defaultdict[str, float] = defaultdict(float)
    chosen_of: defaultdict[str, float] = defaultdict(float)
    count = 0
    for job, of, events, seconds, t0, t1 in cast("list[tuple[str, str, int, float, int, int]]", rows):
        share = (min(until, t1) - max(since, t0)) / max(1, t1 - t0)
        of_team[of] += seconds * share
        if count + events <= most or not chosen_of[of]:
            weights[job], teams[job], gpu_s[job] = share, of, seconds * share
            chosen_of[of] += seconds * share
            count += events
    fleet = Fleet()
    names = list(weights)
    for i in range(0, len(names), _AT_ONCE):
        part = names[i : i + _AT_ONCE]
        told: defaultdict[str, list[str]] = defaultdict(list)
        for name, raw in store.query(_EVENTS, {"jobs": part}).rows:
            told[str(name)].append(str(raw))
        for job, raws in told.items():
            scale = of_team[teams[job]] / chosen_of[teams[job]] if chosen_of[teams[job]] else 1.0
            fleet.add(job, [event for raw in raws for event in _decoded(raw)], weights[job] * scale)
    whole = sum(of_team.values())
    return fleet, Sample(len(names), len(rows), count, 100 * sum(gpu_s.values()) / whole if whole else 100.0)


def _decoded(raw: str) -> list[Event]:
    """An event; none, where a later version wrote what this one cannot read."""
    try:
        return [decode_event(raw)]
    except DecodeError:
        return []
