"""What the writer knows of a job's rows in the database, so that it writes only what changed."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ettwatch_clickhouse.rows import Row
from ettwatch_schemas import PhaseKey

__all__ = ["Known", "KnownJobs", "Pending"]


@dataclass(slots=True)
class Pending:
    """An attempt or a phase that is in the database and not final.

    Attributes:
        digest: Of its content as this writer wrote it last; ``None`` if someone else did.
        content: As someone else wrote it; kept only until this writer has caught up.
    """

    digest: int | None
    content: Row | None = None


@dataclass(slots=True)
class Known:
    """A job's rows in the database.

    Attributes:
        floor: Greatest version among them; what is older says nothing new.
        behind: They were written by someone else who had seen more than this writer has, so far.
        job_digest: Version and content of the job row written last.
        cells: Digest of each hour written last, from the first on that is not final. Keys are µs.
        first_cell: The earliest hour that may have segments (µs); ``None`` if none has.
        last_cell: The latest one.
        attempts: Those that are not final.
        phases: Those that are not final.
    """

    floor: int = 0
    behind: bool = False
    job_digest: int | None = None
    cells: dict[int, int] = field(default_factory=dict)
    first_cell: int | None = None
    last_cell: int | None = None
    attempts: dict[int, Pending] = field(default_factory=dict)
    phases: dict[PhaseKey, Pending] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many rows are remembered."""
        return 1 + len(self.cells) + len(self.attempts) + len(self.phases)

    def has_cell(self, cell: int) -> None:
        """Take note that an hour has segments."""
        self.first_cell = cell if self.first_cell is None else min(cell, self.first_cell)
        self.last_cell = cell if self.last_cell is None else max(cell, self.last_cell)


class KnownJobs:
    """Remembers jobs up to a number of rows; the job that was not in use for the longest time is forgotten first.

    Forgetting costs a look-up and a few rows written once more, nothing else.
    """

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self._jobs: OrderedDict[str, Known] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._rows = 0

    def __contains__(self, job: str) -> bool:
        return job in self._jobs

    def __getitem__(self, job: str) -> Known:
        return self._jobs[job]

    def put(self, job: str, known: Known) -> None:
        """Remember a job, or count it anew after a change."""
        self._jobs[job] = known
        self._jobs.move_to_end(job)
        self._rows += known.size - self._sizes.get(job, 0)
        self._sizes[job] = known.size

    def trim(self) -> None:
        """Forget what is too much."""
        while self._rows > self._most_rows and len(self._jobs) > 1:
            job, _ = self._jobs.popitem(last=False)
            self._rows -= self._sizes.pop(job)

    def missing(self, jobs: Iterable[str]) -> list[str]:
        """Return which of the jobs are not remembered."""
        return [job for job in jobs if job not in self._jobs]
