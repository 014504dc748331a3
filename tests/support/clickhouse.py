"""Helpers for tests of what is stored in ClickHouse: reading results back, a store that fails, a server to talk to."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from ettwatch_clickhouse import Store, Table
from ettwatch_clickhouse.tables import EVERYWHERE, FLEET_VIEWS, ROLLUP_VIEWS, ROLLUPS, WINDOWS_TABLE
from ettwatch_core import Settled, Snapshot, cells
from ettwatch_schemas import AttemptSummary, JobSummary, PhaseSpan, Segment

BASE_TABLES: Final = ("events_log", "segments_log", "attempts_log", "jobs_log", "phases_log")
VIEWS: Final = ("events", "segments", "attempts", "jobs", "phases")
EVERY_TABLE: Final = (
    *BASE_TABLES,
    *ROLLUPS,
    WINDOWS_TABLE,
    *sorted(name for name in EVERYWHERE if name.endswith("_log")),
)
EVERY_VIEW: Final = (*VIEWS, "windows", *FLEET_VIEWS, *ROLLUP_VIEWS, *sorted(EVERYWHERE - {*EVERY_TABLE}))

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SPAN: Final = {"charged": "charged_us", "hidden": "hidden_us", "behind": "behind_us"}


class Truth(NamedTuple):
    """What is true of one job: as stored, or as it should be."""

    summary: JobSummary
    attempts: list[AttemptSummary]
    segments: list[Segment]
    spans: list[PhaseSpan]


def read_truth(store: Store, job: str) -> Truth | None:
    """What the views say of a job; None if they do not know it."""

    def rows(view: str, columns: Iterable[str], order: str) -> list[list[Any]]:
        sql = f"SELECT {', '.join(columns)} FROM {view} WHERE job = {{job:String}} ORDER BY {order}"
        return [[_plain(value) for value in row] for row in store.query(sql, {"job": job}).rows]

    def models(kind: Any, view: str, order: str) -> list[Any]:
        names = list(kind.model_fields)
        return [kind.model_validate(dict(zip(names, row, strict=True))) for row in rows(view, names, order)]

    summaries = models(JobSummary, "jobs", "job")
    if not summaries:
        return None
    assert len(summaries) == 1
    spans = rows(
        "phases",
        [_SPAN.get(name, name) for name in PhaseSpan._fields],
        "attempt, start, end, phase, background, last_rank",
    )
    return Truth(
        summaries[0],
        models(AttemptSummary, "attempts", "attempt"),
        [Segment(*row) for row in rows("segments", Segment._fields, "start")],
        [PhaseSpan(*row) for row in spans],
    )


def should_be(snap: Snapshot, finals: Iterable[Settled] = ()) -> Truth:
    """What the views have to say: all that was handed out as final, and the snapshot."""
    parts: list[Settled | Snapshot] = [*finals, snap]
    attempts = [a for part in parts for a in part.attempts]
    segments = [s for part in parts for s in part.segments]
    # Of two phases of one begin (and of one rank, in the background) the longer counts.
    spans = {
        (s.attempt, s.phase, s.background, s.background and s.last_rank, s.start): s
        for s in sorted((s for part in parts for s in part.spans), key=lambda s: s.end)
    }
    return Truth(
        snap.summary,
        sorted(attempts, key=lambda a: a.attempt),
        [s for _, cell in sorted(cells(segments).items()) for s in cell],
        sorted(spans.values(), key=lambda s: (s.attempt, s.start, s.end, s.phase, s.background, s.last_rank)),
    )


def _plain(value: object) -> object:
    return (value - _EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def empty(store: Store) -> None:
    """Remove all rows."""
    filled = store.query("SELECT name FROM system.tables WHERE database = currentDatabase() AND total_rows > 0").rows
    for (table,) in filled:
        if table in EVERY_TABLE:
            store.command(f"TRUNCATE TABLE {table}")


def count(store: Store, table: str) -> int:
    """How many rows a table or view has."""
    number = store.query(f"SELECT count() FROM {table}").rows[0][0]
    assert isinstance(number, int)
    return number


class FaultyStore:
    """A store on which calls fail by a plan.

    Attributes:
        plan: For each insert or query to come, what happens: ``None`` (it works), or a fault.
        inserts: Tables of the inserts that were tried.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.plan: list[Callable[[Callable[[], object]], object] | None] = []
        self.inserts: list[str] = []

    def _do(self, step: Callable[[], Any]) -> Any:
        fault = self.plan.pop(0) if self.plan else None
        return step() if fault is None else fault(step)

    def command(self, sql: str) -> None:
        self._do(lambda: self.inner.command(sql))

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> Table:
        found = self._do(lambda: self.inner.query(sql, params))
        assert isinstance(found, Table)
        return found

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, token: str | None = None
    ) -> None:
        self.inserts.append(table)
        self._do(lambda: self.inner.insert(table, columns, rows, token=token))

    def close(self) -> None:
        self.inner.close()


def before(error: Exception) -> Callable[[Callable[[], object]], object]:
    """A fault: the error comes before anything was done."""

    def fail(step: Callable[[], object]) -> object:
        raise error

    return fail


def after(error: Exception) -> Callable[[Callable[[], object]], object]:
    """A fault: all was done, but the error comes instead of the answer."""

    def fail(step: Callable[[], object]) -> object:
        step()
        raise error

    return fail


class StoppedClock:
    """A clock that moves only when someone sleeps by it."""

    def __init__(self, now: float = 1_790_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


_SERVER: Final = """
import sys
from pathlib import Path
from ettwatch_clickhouse import Limits, open_embedded, serve
store = open_embedded(Path(sys.argv[1]))
front = serve(store, limits=Limits(head_s=60))
print(front.url, flush=True)
sys.stdin.read()
front.close()
store.close()
"""


@contextlib.contextmanager
def front_process(folder: Path) -> Iterator[str]:
    """The HTTP front over the embedded engine in a process of its own; yields its address."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
