"""On which host each rank of a job ran: told by the events of its start-ups, and by no table made from them."""

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from ettwatch_clickhouse import Store

__all__ = ["Hosts", "hosts_of", "names_of"]

Hosts: TypeAlias = Mapping[tuple[int, int], str]
"""By attempt and rank. Who did not say is not there."""

_MOST_ATTEMPTS: Final = 100
"""The newest. Of each only the events until its first batch are read: a loop of months tells no more about hosts."""
_MOST_RANKS: Final = 20_000
_MOST_NAMES: Final = 64


def hosts_of(store: Store, job: str) -> Hosts:
    """Return the hosts of the ranks that told phases, of the newest 100 attempts. Raises StoreError."""
    windows = store.query(
        "SELECT toUnixTimestamp64Micro(start), toUnixTimestamp64Micro(ifNull(first_batch, end)) FROM attempts "
        f"WHERE job = {{job:String}} ORDER BY attempt DESC LIMIT {_MOST_ATTEMPTS}",
        {"job": job},
    ).rows
    if not windows:
        return {}
    times = " OR ".join(f"ts BETWEEN {_at(since)} AND {_at(until)}" for since, until in windows)
    rows = store.query(
        "SELECT attempt, rank, argMax(host, ts) FROM events_log WHERE job = {job:String} "
        "AND kind IN ('phase_started', 'phase_ended', 'training_started') AND source = 'trainer' "
        f"AND attempt IS NOT NULL AND host IS NOT NULL AND ({times}) "
        f"GROUP BY attempt, rank ORDER BY attempt DESC, rank LIMIT {_MOST_RANKS}",
        {"job": job},
    ).rows
    return {(cast(int, attempt), cast(int, rank)): str(host) for attempt, rank, host in rows}


def names_of(hosts: Hosts, attempt: int) -> list[str]:
    """Return the hosts of an attempt in order of their lowest ranks, at most 64."""
    ranks = sorted((rank, host) for (number, rank), host in hosts.items() if number == attempt)
    return list(dict.fromkeys(host for _, host in ranks))[:_MOST_NAMES]


def _at(us: object) -> str:
    return f"fromUnixTimestamp64Micro({int(cast(int, us))}, 'UTC')"
