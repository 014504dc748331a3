"""Alerts as the table of alerts holds them."""

from typing import Any, Final

from ettwatch_clickhouse import Store
from ettwatch_monitor.api.shapes import AlertRow
from ettwatch_monitor.queries.rows import micros, named

__all__ = ["count_firing", "list_alerts"]

_MOST: Final = 500
_URGENT: Final = "multiIf(status != 'firing', 3, severity = 'critical', 0, severity = 'warning', 1, 2)"


def list_alerts(store: Store, status: str | None = None) -> list[AlertRow]:
    """Return the newest state of each alert, at most 500: those that fire first, by severity, then the newest.

    Raises StoreError.
    """
    where = "status = {status:String}" if status is not None else "1"
    answer = store.query(
        f"SELECT * FROM alerts WHERE {where} ORDER BY {_URGENT}, updated_at DESC, key LIMIT {_MOST}",
        {"status": status} if status is not None else {},
    )
    return [_row(named(answer.columns, row)) for row in answer.rows]


def count_firing(store: Store) -> int:
    """Return how many fire. Raises StoreError."""
    ((number,),) = store.query("SELECT count() FROM alerts WHERE status = 'firing'").rows
    return int(str(number))


def _row(told: dict[str, Any]) -> AlertRow:
    ends = told["ends_at"]
    return AlertRow(
        key=told["key"],
        episode=told["episode"],
        status=told["status"],
        severity=told["severity"],
        title=told["title"],
        body=told["body"],
        starts_us=micros(told["starts_at"]),
        ends_us=micros(ends) if ends is not None else None,
        updated_us=micros(told["updated_at"]),
        silenced=told["silenced"],
        labels=told["labels"],
        figures=told["figures"],
        sql=list(zip(told["sql_titles"], told["sql_queries"], strict=False)),
    )
