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


class Columns(NamedTuple):
    """The segments of one hour as columns of equal length.

    Attributes:
        attempt: Number of the attempt of each segment.
        stage: What its time was charged to.
        start: Its begin, in µs from the begin of the hour.
        length: Its length (µs).
        gpus: GPUs held in it.
    """

    attempt: list[int]
    stage: list[str]
    start: list[int]
    length: list[int]
    gpus: list[int]


class Hour:
    """The segments of one hour, all of them: as a list or as columns. What it is not made from is made when asked for.

    Args:
        cell: Begin of the hour (µs since the Unix epoch).
        segments: Cut to the hour, by time; none if the job does not reach into that hour any more.
    """

    __slots__ = ("_columns", "_job", "_segments", "cell")

    def __init__(self, cell: int, segments: list[Segment]) -> None:
        self.cell = cell
        self._job = ""
        self._segments: list[Segment] | None = segments
        self._columns: Columns | None = None

    @classmethod
    def of_columns(cls, job: str, cell: int, columns: Columns) -> Self:
        """Return the hour of a job with these segments."""
        hour = cls(cell, [])
        hour._job, hour._segments, hour._columns = job, None, columns
        return hour

    @property
    def segments(self) -> list[Segment]:
        """The segments, by time."""
        if self._segments is None:
            job, cell, make = self._job, self.cell, Segment._make
            rows = zip(*self.columns, strict=True)
            self._segments = [
                make((job, attempt, stage, cell + at, cell + at + length, gpus))
                for attempt, stage, at, length, gpus in rows
            ]
        return self._segments

    @property
    def columns(self) -> Columns:
        """The same as columns."""
        if self._columns is None:
            cell, rows = self.cell, self.segments
            self._columns = Columns(
                [s.attempt for s in rows],
                [s.stage for s in rows],
                [s.start - cell for s in rows],
                [s.end - s.start for s in rows],
                [s.gpus for s in rows],
            )
        return self._columns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hour) and self.cell == other.cell and self.segments == other.segments

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Hour({self.cell}, {self.segments})"


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
