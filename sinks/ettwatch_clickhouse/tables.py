"""The base tables by name, and their shadows during a rebuild."""

from dataclasses import dataclass
from typing import Final, Self

__all__ = ["DERIVED", "EVENTS_TABLE", "SHADOW", "Tables"]

EVENTS_TABLE: Final = "events_log"
DERIVED: Final = ("phases_log", "attempts_log", "segments_log", "jobs_log")
"""Tables that are made from events, in the order in which they are written: a job's row comes last."""

SHADOW: Final = "_new"
"""What is appended to their names for the tables that a rebuild fills."""


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
