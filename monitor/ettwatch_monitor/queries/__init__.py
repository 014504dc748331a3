"""Questions to the database, and their answers as values: where page, API and metrics have their numbers from."""

from ettwatch_monitor.queries.alerts import count_firing, list_alerts
from ettwatch_monitor.queries.compare import KINDS, CompareError, compare
from ettwatch_monitor.queries.fleet import fleet, made_until, team_view
from ettwatch_monitor.queries.job import job_detail, near_names, timeline
from ettwatch_monitor.queries.jobs import LIVE, SORTS, STATUSES, Wanted, all_jobs, count_jobs, list_jobs
from ettwatch_monitor.queries.names import Names, read_names
from ettwatch_monitor.queries.now import Mark, day_figures, mark
from ettwatch_monitor.queries.owner import NOBODY, owner_view
from ettwatch_monitor.queries.ownership import read_owners
from ettwatch_monitor.queries.scope import DIMENSIONS, Scope
from ettwatch_monitor.queries.series import series
from ettwatch_monitor.queries.span import DAY_US, HOUR_US, WEEK_US, Span, SpanError
from ettwatch_monitor.queries.trace import trace
from ettwatch_monitor.queries.usual import usual_start

__all__ = [
    "DAY_US",
    "DIMENSIONS",
    "HOUR_US",
    "KINDS",
    "LIVE",
    "NOBODY",
    "SORTS",
    "STATUSES",
    "WEEK_US",
    "CompareError",
    "Mark",
    "Names",
    "Scope",
    "Span",
    "SpanError",
    "Wanted",
    "all_jobs",
    "compare",
    "count_firing",
    "count_jobs",
    "day_figures",
    "fleet",
    "job_detail",
    "list_alerts",
    "list_jobs",
    "made_until",
    "mark",
    "near_names",
    "owner_view",
    "read_names",
    "read_owners",
    "series",
    "team_view",
    "timeline",
    "trace",
    "usual_start",
]
