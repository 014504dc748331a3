"""The base tables by name, and their shadows during a rebuild."""

from dataclasses import dataclass
from typing import Final, Self

__all__ = [
    "DERIVED",
    "EVENTS_TABLE",
    "EVERYWHERE",
    "FLEET_VIEWS",
    "ROLLUPS",
    "ROLLUP_VIEWS",
    "SHADOW",
    "SHARD_KEYS",
    "WINDOWS_TABLE",
    "Tables",
]

EVENTS_TABLE: Final = "events_log"
DERIVED: Final = ("phases_log", "attempts_log", "segments_log", "jobs_log")
"""Tables that are made from events, in the order in which they are written: a job's row comes last."""

SHADOW: Final = "_new"
"""What is appended to their names for the tables that a rebuild fills."""

ROLLUPS: Final = ("rollup_jobs", "rollup_hours", "rollup_days")
"""Tables that hold sums of what the derived ones hold."""

ROLLUP_VIEWS: Final = (
    "rollup_moments",
    "rollup_jobs_truth",
    "rollup_jobs_source",
    "rollup_jobs_stale",
    "rollup_written",
)
"""Views by which the rollups are kept; nobody else asks them."""

FLEET_VIEWS: Final = (
    *("fleet_hourly", "team_hourly", "model_hourly", "cluster_hourly", "stage_hourly", "owner_hourly", "job_hourly"),
    *("fleet_daily", "team_daily", "model_daily", "cluster_daily", "stage_daily", "owner_daily"),
    *("starts", "failures", "stragglers"),
)
"""Views of the fleet."""

EVERYWHERE: Final = frozenset({"owners", "owners_log", "alerts", "alerts_log"})
"""Small tables and views of which every server of a cluster holds all rows, whatever its shard."""

WINDOWS_TABLE: Final = "windows_log"
"""What `ettwatch windows` publishes; the view is called `windows`."""

SHARD_KEYS: Final = {
    "rollup_hours": "cityHash64(hour)",
    "rollup_days": "cityHash64(day)",
    WINDOWS_TABLE: "cityHash64(name)",
}
"""Of tables without a job: by what their rows are spread over the shards of a cluster."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Names of the derived tables."""

    phases: str = "phases_log"
    attempts: str = "attempts_log"
    segments: str = "segments_log"
    jobs: str = "jobs_log"

    @classmethod
    def shadow(cls) -> Self:
        """Return the names of the shadow tables."""
        return cls(*(name + SHADOW for name in DERIVED))

    def all(self) -> tuple[str, str, str, str]:
        """Return them in the order of writing."""
        return (self.phases, self.attempts, self.segments, self.jobs)
