"""What is new: a mark that moves whenever anything was written, and the figures of the last hours."""

from typing import NamedTuple, cast

from ettwatch_clickhouse import Store
from ettwatch_monitor.api.shapes import Figures
from ettwatch_monitor.queries.figures import sums
from ettwatch_monitor.queries.jobs import Wanted, count_jobs
from ettwatch_monitor.queries.scope import Scope
from ettwatch_monitor.queries.span import Span

__all__ = ["Mark", "day_figures", "mark"]


class Mark(NamedTuple):
    """Equal marks: nothing was written between."""

    written: int
    made: int
    """Of the rollups."""
    alerts: int


def mark(store: Store) -> Mark:
    """Return the mark. It is cheap. Raises StoreError."""
    row = store.query(
        "SELECT (SELECT max(written) FROM jobs_log), (SELECT max(made) FROM rollup_hours), "
        "(SELECT max(toUnixTimestamp64Micro(written)) FROM alerts_log)"
    ).rows[0]
    return Mark(*(int(cast("int | None", value) or 0) for value in row))


def day_figures(store: Store, span: Span, scope: Scope) -> Figures | None:
    """Return the figures of a span; None where nothing was. Raises StoreError."""
    total, _ = sums(store, span, scope)
    if total is None:
        return None
    jobs = sum(sum(told.values()) for told in count_jobs(store, Wanted(scope, span)).values())
    return total.figures.model_copy(update={"jobs": jobs})
