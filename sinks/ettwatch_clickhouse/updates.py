"""From updates and accepted events to the rows that have to be written. No I/O.

For each row the greatest version counts, and a final one before all others: in a batch as in the tables. So the order
in which updates come, and how often, plays no part.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from ettwatch_clickhouse.rows import (
    ATTEMPTS,
    EVENTS,
    JOBS,
    PHASES,
    SEGMENTS,
    Row,
    attempt_content,
    attempt_row,
    hour_row,
    job_content,
    job_row,
    phase_content,
    phase_row,
)
from ettwatch_clickhouse.tables import EVENTS_TABLE, WINDOWS_TABLE, Tables
from ettwatch_clickhouse.windows import WINDOWS, WindowBatch
from ettwatch_clickhouse.writeids import WriteIds
from ettwatch_schemas import (
    AttemptSummary,
    AttemptsUpdate,
    Hour,
    JobSummary,
    PhaseKey,
    PhaseSpan,
    PhasesUpdate,
    SegmentsUpdate,
    Update,
    Window,
)

__all__ = ["Bounds", "Insert", "Standing", "UpdateBatch", "Wholes"]

K = TypeVar("K")
V = TypeVar("V")

_NO_HOURS: Final = (2**62, -1)


class Insert(NamedTuple):
    """Rows for one table.

    Attributes:
        table: Its name.
        columns: In the order of the values.
        rows: The rows.
    """

    table: str
    columns: tuple[str, ...]
    rows: list[Row]


class Bounds(NamedTuple):
    """The hours outside of which a job has no segments.

    Attributes:
        version: Of the update that says so.
        first: The first hour (µs).
        last: The last hour (µs); before the first if there is none.
    """

    version: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Wholes:
    """The jobs of a batch of which an update tells all that is not final: by what stands in the tables, they differ.

    Attributes:
        attempts: Jobs of which all attempts are told.
        phases: Jobs of which all phases are told.
        segments: By job, the hours outside of which nothing is left.
    """

    attempts: list[str]
    phases: list[str]
    segments: dict[str, Bounds]

    def __bool__(self) -> bool:
        return bool(self.attempts or self.phases or self.segments)


@dataclass(slots=True)
class Standing:
    """What the tables hold of the jobs in Wholes.

    Attributes:
        attempts: By job, attempts that are neither final nor gone.
        phases: By job, phases that are neither final nor gone.
        hours: By job, hours with segments outside of the bounds (µs).
    """

    attempts: dict[str, list[int]] = field(default_factory=dict)
    phases: dict[str, list[PhaseKey]] = field(default_factory=dict)
    hours: dict[str, list[int]] = field(default_factory=dict)


class _Told(NamedTuple, Generic[V]):
    """What counts of a row so far; without a value it is gone."""

    rank: tuple[bool, int]
    value: V | None


class _Part(Generic[K, V]):
    """All that a batch tells of attempts, or of phases."""

    def __init__(self) -> None:
        self._jobs: dict[str, dict[K, _Told[V]]] = {}
        self._wholes: dict[str, tuple[int, set[K]]] = {}

    def take(
        self,
        job: str,
        version: int,
        whole: bool,
        opened: Mapping[K, V],
        final: Mapping[K, V],
        gone: Iterable[K],
    ) -> int:
        """Take in an update; return how many rows it has."""
        told = self._jobs.setdefault(job, {})
        rows: list[tuple[K, _Told[V]]] = [(key, _Told((False, version), None)) for key in gone]
        rows += [(key, _Told((False, version), value)) for key, value in opened.items()]
        rows += [(key, _Told((True, version), value)) for key, value in final.items()]
        for key, row in rows:
            before = told.get(key)
            if before is None or row.rank >= before.rank:
                told[key] = row
        if whole and version >= self._wholes.get(job, (0, None))[0]:
            self._wholes[job] = (version, {key for key, _ in rows})
        return len(rows)

    def wholes(self) -> list[str]:
        """Return the jobs of which an update told all."""
        return list(self._wholes)

    def rows(self, pending: Mapping[str, Iterable[K]]) -> Iterator[tuple[str, K, _Told[V]]]:
        """Yield what counts of each row; what is pending and was not told by an update that told all is gone."""
        for job, (version, listed) in self._wholes.items():
            told = self._jobs[job]
            lost = _Told[V]((False, version), None)
            for key in [*pending.get(job, ()), *told]:
                if key not in listed and (key not in told or told[key].rank < lost.rank):
                    told[key] = lost
        for job, told in self._jobs.items():
            for key, row in told.items():
                yield job, key, row


class UpdateBatch:
    """Updates and events on their way into the tables."""

    def __init__(self) -> None:
        self.rows = 0
        """How many rows were taken in; as many are written at most, but for those that take something back."""
        self._events: list[Row] = []
        self._jobs: dict[str, JobSummary] = {}
        self._attempts = _Part[int, AttemptSummary]()
        self._phases = _Part[PhaseKey, PhaseSpan]()
        self._cells: dict[str, dict[int, tuple[int, Hour]]] = {}
        self._bounds: dict[str, Bounds] = {}
        self._windows = WindowBatch()

    def update(self, update: Update) -> None:
        """Take in an update, or the summary of a job."""
        match update:
            case JobSummary():
                self._summary(update)
            case AttemptsUpdate(job, version, whole, opened, final, gone):
                self.rows += self._attempts.take(
                    job, version, whole, {a.attempt: a for a in opened}, {a.attempt: a for a in final}, gone
                )
            case PhasesUpdate(job, version, whole, spans, finals, keys):
                self.rows += self._phases.take(job, version, whole, _by_key(spans), _by_key(finals), keys)
            case SegmentsUpdate():
                self._segments(update)

    def window(self, window: Window) -> None:
        """Take in a window."""
        self._windows.take(window)
        self.rows += 1

    def events(self, rows: list[Row]) -> None:
        """Take in rows of events, as :func:`ettwatch_clickhouse.rows.event_row` makes them."""
        self._events += rows
        self.rows += len(rows)

    def wholes(self) -> Wholes:
        """Return of which jobs it has to be known what stands in the tables."""
        return Wholes(self._attempts.wholes(), self._phases.wholes(), dict(self._bounds))

    def inserts(self, standing: Standing, ids: WriteIds, tables: Tables | None = None) -> list[Insert]:
        """Return the rows of each table, in the order in which they have to be written. To be called once.

        Args:
            standing: What the tables hold of the jobs in :meth:`wholes`.
            ids: Numbers of writes.
            tables: The names of the derived tables.
        """
        names = tables or Tables()
        next_id = ids.next
        phases = [
            phase_row(job, key, rank[1], next_id(), None if span is None else phase_content(span), final=rank[0])
            for job, key, (rank, span) in self._phases.rows(standing.phases)
        ]
        attempts = [
            attempt_row(job, number, rank[1], next_id(), None if told is None else attempt_content(told), final=rank[0])
            for job, number, (rank, told) in self._attempts.rows(standing.attempts)
        ]
        jobs = [job_row(job, s.version, next_id(), job_content(s)) for job, s in self._jobs.items()]
        cells = [
            hour_row(job, hour, version, next_id())
            for job, of_job in self._with_emptied(standing.hours).items()
            for version, hour in of_job.values()
        ]
        made = [
            Insert(EVENTS_TABLE, EVENTS, self._events),
            Insert(names.phases, PHASES, phases),
            Insert(names.attempts, ATTEMPTS, attempts),
            Insert(names.segments, SEGMENTS, cells),
            Insert(names.jobs, JOBS, jobs),
            Insert(WINDOWS_TABLE, WINDOWS, self._windows.rows(ids)),
        ]
        return [insert for insert in made if insert.rows]

    def _summary(self, summary: JobSummary) -> None:
        before = self._jobs.get(summary.job)
        if before is None or summary.version >= before.version:
            self._jobs[summary.job] = summary
        self.rows += 1

    def _segments(self, update: SegmentsUpdate) -> None:
        job, version = update.job, update.version
        cells = self._cells.setdefault(job, {})
        for hour in update.hours:
            before = cells.get(hour.cell)
            if before is None or version >= before[0]:
                cells[hour.cell] = (version, hour)
        self.rows += len(update.hours)
        known = self._bounds.get(job)
        if update.whole and (known is None or version >= known.version):
            first, last = _NO_HOURS if update.first is None or update.last is None else (update.first, update.last)
            self._bounds[job] = Bounds(version, first, last)

    def _with_emptied(self, standing: Mapping[str, Iterable[int]]) -> dict[str, dict[int, tuple[int, Hour]]]:
        for job, (version, first, last) in self._bounds.items():
            cells = self._cells[job]
            for cell in [*standing.get(job, ()), *cells]:
                if not first <= cell <= last and (cell not in cells or cells[cell][0] < version):
                    cells[cell] = (version, Hour(cell, []))
        return self._cells


def _by_key(spans: Iterable[PhaseSpan]) -> dict[PhaseKey, PhaseSpan]:
    return {PhaseKey.of(span): span for span in spans}
