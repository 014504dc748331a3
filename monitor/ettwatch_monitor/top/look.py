"""One look at the fleet: what is shown of it in a terminal."""

from dataclasses import dataclass
from typing import Final

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.api.shapes import AlertRow, Figures, Group, JobRow
from ettwatch_monitor.queries import LIVE, Scope, Span, Wanted, count_jobs, fleet, list_alerts, list_jobs

_HOUR_US: Final = 3_600_000_000
_MOST_JOBS: Final = 100


@dataclass(frozen=True, slots=True)
class Look:
    """The fleet at one time.

    Attributes:
        at_us: When (µs since the epoch).
        hours: Over how many hours the figures are.
        statuses: Jobs by status, of those that are not over.
        total: Figures of the time; None where there was nothing.
        components: GPU-hours by component.
        groups: Teams, models, clusters or owners; those that lost most first.
        by: Which of these.
        jobs: Jobs that are not over, by how they are sorted.
        alerts: Those that fire.
    """

    at_us: int
    hours: int
    statuses: dict[str, int]
    total: Figures
    components: dict[str, float]
    groups: list[Group]
    by: str
    jobs: list[JobRow]
    alerts: list[AlertRow]


def look(store: Store, owners: Owners, now: int, hours: int, scope: Scope, by: str, sort: str) -> Look:
    """Look at the fleet. Raises StoreError.

    Args:
        store: The database.
        owners: Who owns which stage.
        now: The time (µs).
        hours: Over how many hours the figures are; the one that runs is one of them.
        scope: Whose jobs.
        by: team, model, cluster or owner.
        sort: How the jobs are sorted, as in the API.
    """
    whole = fleet(store, owners, Span.around(now - hours * _HOUR_US, now), scope, by)
    live = Wanted(scope, statuses=LIVE)
    return Look(
        at_us=now,
        hours=hours,
        statuses=count_jobs(store, live).get("", {}),
        total=whole.total,
        components=whole.components,
        groups=whole.groups,
        by=by,
        jobs=list_jobs(store, live, sort, 1, _MOST_JOBS).jobs,
        alerts=[alert for alert in list_alerts(store, "firing") if not alert.silenced],
    )
