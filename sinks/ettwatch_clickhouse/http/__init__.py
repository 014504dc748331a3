"""ClickHouse's HTTP protocol over the embedded engine."""

from ettwatch_clickhouse.http.front import HttpFront, Limits, serve

__all__ = ["HttpFront", "Limits", "serve"]
