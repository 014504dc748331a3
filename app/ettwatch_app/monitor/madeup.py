"""Alerts of the made-up fleet: about what its scenario makes worse on purpose, so nobody has to find it first."""

from typing import Final

__all__ = ["ALERT_COLUMNS", "DAY_US", "alert_rows"]

DAY_US: Final = 86_400_000_000

ALERT_COLUMNS: Final = (
    *("key", "episode", "seq", "id", "status", "severity", "starts_at", "ends_at", "updated_at", "silenced", "labels"),
    *("title", "body", "figures", "words", "sql_titles", "sql_queries", "written"),
)


def alert_rows(begin: int, days: float, now: int) -> list[tuple[object, ...]]:
    """Return two alerts that fire and one that is over.

    Args:
        begin: Of the fleet (µs).
        days: Of its past.
        now: The time (µs).
    """
    said = "Made up with the fleet of the demo, whose scenario makes this worse on purpose; no detector found it."
    west = {"metric": "hardware_setup", "cluster": "west", "component": "hardware_setup", "owner": "compute platform"}
    feed = {"metric": "cache_hits", "team": "feed", "component": "pt2_compilation", "owner": "compiler"}
    over = {"metric": "failures", "cluster": "north", "component": "wasted_training"}
    query = "SELECT day, round(sum(gpu_s) / 3600, 1) AS gpu_hours FROM stage_daily WHERE {} GROUP BY day ORDER BY day"
    half, later = begin + int(days / 2 * DAY_US), begin + int(days * 0.6 * DAY_US)

    def row(
        key: str,
        severity: str,
        since: int,
        until: int | None,
        labels: dict[str, str],
        title: str,
        factor: float,
        where: str,
    ) -> tuple[object, ...]:
        status = "firing" if until is None else "resolved"
        shown = (["GPU-hours by day"], [query.format(where)])
        text: tuple[object, ...] = (title, f"{title}.\n\n{said}", {"factor": factor}, {}, *shown, now)
        return (key, since, 0, f"{key}-{since}", status, severity, since, until, until or now, False, labels, *text)

    return [
        row(
            "hardware_setup|cluster=west",
            "critical",
            half,
            None,
            west,
            "hardware_setup on west takes about 3 times as long as before",
            3.0,
            "cluster = 'west' AND component = 'hardware_setup'",
        ),
        row(
            "cache_hits|team=feed",
            "warning",
            later,
            None,
            feed,
            "most starts of feed compile everything anew",
            0.8,
            "team = 'feed' AND component = 'pt2_compilation'",
        ),
        row(
            "failures|cluster=north",
            "info",
            half,
            later,
            over,
            "jobs on north fail more often than before",
            3.0,
            "cluster = 'north' AND component = 'wasted_training'",
        ),
    ]
