"""A fleet out of ClickHouse: the raw events of its jobs, of a sample where there are too many."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, cast

from ettwatch_clickhouse import Store
from ettwatch_monitor.advice.fleet import Fleet
from ettwatch_monitor.queries import Scope
from ettwatch_schemas import DecodeError, Event, decode_event

MOST_EVENTS: Final = 400_000
"""How many events are looked at; with more, a sample of the jobs stands for all."""
_AT_ONCE: Final = 200
_PEERS: Final = 40_000
"""So many events of other jobs are read to know what is usual for one."""
_BEFORE_US: Final = 14 * 24 * 3_600_000_000
"""... of jobs that began so long before it, at most (µs)."""

_JOBS: Final = """
SELECT job, ifNull(team, ''), events, gpu_e2e_s, toUnixTimestamp64Micro(t0), toUnixTimestamp64Micro(t1) FROM jobs
WHERE t0 < fromUnixTimestamp64Micro({until:Int64}) AND t1 > fromUnixTimestamp64Micro({since:Int64})
AND %s AND attempts > 0
ORDER BY cityHash64(job)
"""
_JOB: Final = """
SELECT ifNull(team, ''), ifNull(model, ''), events, toUnixTimestamp64Micro(t0), toUnixTimestamp64Micro(t1) FROM jobs
WHERE job = {job:String} AND attempts > 0
"""
_LIKE: Final = """
SELECT job, events FROM jobs
WHERE t0 < fromUnixTimestamp64Micro({until:Int64}) AND t0 > fromUnixTimestamp64Micro({since:Int64})
AND %s AND attempts > 0 AND job != {job:String}
ORDER BY abs(toUnixTimestamp64Micro(t0) - {at:Int64}), job LIMIT 1000
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
    go_on: Callable[[], object] | None = None,
) -> tuple[Fleet, Sample]:
    """Read the jobs that had time between two times (µs). Raises StoreError.

    A job counts with the share of its time that lies there. Where there are more than `most` events, jobs are chosen
    by a hash of their names, and stand for the others of their team by GPU time. An empty name stands for jobs that
    name none. `go_on` is called before each job that is read or laid out, as long as the store is open.
    """
    scope = Scope(team, model, cluster)
    rows = store.query(_JOBS % scope.where(), {"since": since, "until": until, **scope.params()}).rows
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
    fleet = Fleet(go_on=_open(store, go_on))
    scales = {of: of_team[of] / chosen if chosen else 1.0 for of, chosen in chosen_of.items()}
    for name, told in _told(store, list(weights)):
        scale = scales[teams[name]]
        fleet.add(name, told, weights[name] * scale, scale)
    whole = sum(of_team.values())
    return fleet, Sample(len(weights), len(rows), count, 100 * sum(gpu_s.values()) / whole if whole else 100.0)


def read_job(
    store: Store, job: str, *, peers: int = _PEERS, go_on: Callable[[], object] | None = None
) -> tuple[Fleet, Sample, int, int] | None:
    """Read one job and others like it, which say what is usual. Raises StoreError.

    Returns the fleet, the sample of that one job, and its begin and end (µs); None where it never began an attempt.
    """
    found = cast("list[tuple[str, str, int, int, int]]", store.query(_JOB, {"job": job}).rows)
    if not found:
        return None
    team, model, count, t0, t1 = found[0]
    like = Scope(team, model)
    asked = {"job": job, "at": t0, "since": t0 - _BEFORE_US, "until": t1, **like.params()}
    names = [job]
    for name, events in cast("list[tuple[str, int]]", store.query(_LIKE % like.where(), asked).rows):
        peers -= events
        if peers < 0:
            break
        names.append(name)
    fleet = Fleet(go_on=_open(store, go_on))
    for name, told in _told(store, names):
        fleet.add(name, told)
    return fleet, Sample(1, 1, count, 100.0), t0, t1


def _open(store: Store, go_on: Callable[[], object] | None) -> Callable[[], None]:
    """What a fleet calls before each job: raises where the store has been closed meanwhile."""

    def check() -> None:
        store.query  # noqa: B018
        if go_on is not None:
            go_on()

    return check


def _told(store: Store, names: Sequence[str]) -> Iterator[tuple[str, list[Event]]]:
    """The events of jobs."""
    for i in range(0, len(names), _AT_ONCE):
        told: defaultdict[str, list[str]] = defaultdict(list)
        for name, raw in store.query(_EVENTS, {"jobs": list(names[i : i + _AT_ONCE])}).rows:
            told[str(name)].append(str(raw))
        for job, raws in told.items():
            yield job, [event for raw in raws for event in _decoded(raw)]


def _decoded(raw: str) -> list[Event]:
    """An event; none, where a later version wrote what this one cannot read."""
    try:
        return [decode_event(raw)]
    except DecodeError:
        return []
