"""What a worker publishes of a job after its summary: attempts, phases and segments, as far as they changed.

An update brings a reader who took all updates before it up to date. Any may come again, and an older one may follow a
newer: for each row the greatest `version` counts, and of equal versions the final one.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

from ettwatch_schemas.results import AttemptSummary, JobSummary, PhaseSpan, Segment


class PhaseKey(NamedTuple):
    """What tells a phase from the others of its job."""

    attempt: int
    phase: str
    background: bool
    of_rank: int
    """The rank of a background phase; 0 for any other, which is one for all ranks."""
    start: int
    """Microseconds since the Unix epoch."""

    @classmethod
    def of(cls, span: PhaseSpan) -> Self:
        """Return the key of a phase."""
        rank = span.last_rank if span.background else 0
        return cls(span.attempt, span.phase, span.background, rank, span.start)


@dataclass(frozen=True, slots=True)
class Hour:
    """The segments of one hour, all of them.

    Attributes:
        cell: Begin of the hour (µs since the Unix epoch).
        segments: Cut to the hour, by time; none if the job does not reach into that hour any more.
    """

    cell: int
    segments: list[Segment]


@dataclass(frozen=True, slots=True)
class AttemptsUpdate:
    """Attempts of a job that changed.

    Attributes:
        job: The job.
        version: Of the summary that says the same.
        whole: `open` holds every attempt that is not final. Any other that a reader holds as not final is gone.
        open: Attempts that events may still change.
        final: Attempts that no event changes any more. Each is sent once, but for retries.
        gone: Numbers of attempts that a correction removed.
    """

    job: str
    version: int
    whole: bool
    open: list[AttemptSummary]
    final: list[AttemptSummary]
    gone: list[int]


@dataclass(frozen=True, slots=True)
class PhasesUpdate:
    """Phases of a job that changed. The fields are those of AttemptsUpdate; `gone` holds keys of phases."""

    job: str
    version: int
    whole: bool
    open: list[PhaseSpan]
    final: list[PhaseSpan]
    gone: list[PhaseKey]


@dataclass(frozen=True, slots=True)
class SegmentsUpdate:
    """Hours of a job's timeline that changed.

    Attributes:
        job: The job.
        version: Of the summary that says the same.
        whole: Hours that a reader holds before `first` or after `last` are empty.
        first: The first hour of the job that has segments (µs since the Unix epoch); None if no hour has any.
        last: The last one.
        hours: The hours that changed, each as it is now.
    """

    job: str
    version: int
    whole: bool
    first: int | None
    last: int | None
    hours: list[Hour]


Update: TypeAlias = JobSummary | AttemptsUpdate | PhasesUpdate | SegmentsUpdate
"""What a worker publishes of a job."""
