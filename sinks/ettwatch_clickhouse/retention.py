"""How long rows are kept."""

import re
from typing import Final

from ettwatch_clickhouse.cluster import LOCAL
from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.tables import EVENTS_TABLE

__all__ = ["DEFAULT_EVENT_DAYS", "retention", "segments_days", "set_retention"]

DEFAULT_EVENT_DAYS: Final = 400

_TIME: Final = {
    "events": (EVENTS_TABLE, "toDateTime(received)"),
    # A DateTime ends in 2106; hours beyond it are not expired by it.
    "segments": ("segments_log", "toDateTime(least(cell, toDateTime64('2106-01-01 00:00:00', 0, 'UTC')))"),
    "phases": ("phases_log", "toDateTime(least(start, toDateTime64('2106-01-01 00:00:00', 6, 'UTC')))"),
}
_DAYS: Final = re.compile(r"\bTTL\b.*\btoIntervalDay\((\d+)\)", re.S)


def set_retention(store: Store, view: str, days: int | None) -> None:
    """Set how long the rows of a view are kept. Old rows go as the engine merges, not at once.

    Args:
        store: The database.
        view: ``events`` (counted from when they were taken in), ``segments`` or ``phases`` (from when they happened).
            Jobs and attempts are few and are kept for ever.
        days: At least 1; None for ever.

    Raises:
        ValueError: Another view, or no such number of days.
        StoreError: The engine refused.
    """
    if view not in _TIME:
        raise ValueError(f"view: {view!r} has no retention; choose one of {', '.join(_TIME)}")
    if days is not None and days < 1:
        raise ValueError(f"days: {days} is not a time to keep rows; give at least 1, or None to keep them for ever")
    if days == retention(store, view):
        return
    table, time = _TIME[view]
    if days is None:
        store.command(f"ALTER TABLE {table} REMOVE TTL")
    else:
        store.command(f"ALTER TABLE {table} MODIFY TTL {time} + toIntervalDay({days})")


def retention(store: Store, view: str) -> int | None:
    """Return for how many days the rows of a view are kept; None for ever.

    Raises:
        StoreError: It cannot be read.
    """
    rows = store.query(
        "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = {name:String}",
        {"name": _TIME[view][0]},
    ).rows
    found = _DAYS.search(str(rows[0][0])) if rows else None
    return int(found[1]) if found else None


_LONG: Final = re.compile(r"\bTTL\b.*\btoInterval(Day|Week|Month|Quarter|Year)\((\d+)\)", re.S)
_LEAST_DAYS: Final = {"Day": 1, "Week": 7, "Month": 28, "Quarter": 90, "Year": 365}


def segments_days(store: Store) -> int | None:
    """Return for how many days segments are kept at least, on a cluster too; None for ever.

    Raises:
        StoreError: It cannot be read.
    """
    rows = store.query(
        "SELECT create_table_query FROM system.tables "
        f"WHERE database = currentDatabase() AND name IN ('segments_log', 'segments_log{LOCAL}')"
    ).rows
    found = [_LONG.search(str(row[0])) for row in rows]
    return min((int(each[2]) * _LEAST_DAYS[each[1]] for each in found if each), default=None)
