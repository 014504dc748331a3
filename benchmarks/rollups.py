"""Dashboards over 100 million segments: each question of the cookbook from the rollups, and from the truth views.

``nice python benchmarks/rollups.py [--segments 100000000] [--folder FOLDER] [--keep]``

Makes a fleet by SQL in the embedded engine, brings the rollups up to date, checks that both ways give one answer, and
takes the time of each question: from rollups the median of five runs, from segments one run. Questions by the day are
asked of all thirteen weeks, those by the hour of two. A folder that was kept is used as it is.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from _common import save
from _rollup_fleet import BEGIN, HOURS, OWNERS, fill
from _rollup_questions import Question, questions
from ettwatch_clickhouse import EmbeddedStore, Rollups, Table, migrate, open_embedded

_FROM_ROLLUPS_MS: Final = 300.0
_FROM_SEGMENTS_S: Final = 6.0
_RUNS: Final = 5
_TABLES: Final = (
    "segments_log",
    "rollup_jobs",
    "rollup_hours",
    "rollup_days",
    "attempts_log",
    "jobs_log",
    "phases_log",
)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="rollups-"))
    free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
    need = options.segments * 30
    if free < need:
        parser.error(f"{need / 1e9:.0f} GB are needed in {folder}, and {free / 1e9:.0f} GB are free")
    store = open_embedded(folder)
    try:
        _measure(store, options.segments)
    finally:
        store.close()
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _measure(store: EmbeddedStore, segments: int) -> None:
    migrate(store)
    ((before,),) = store.query("SELECT count() FROM segments_log").rows
    filled_s = 0.0 if before else _seconds(lambda: fill(store, segments))[0]
    columns = ("loaded", "digest", "stage_prefix", "cluster", "model", "system", "team", "contact", "source")
    store.insert("owners_log", columns, [(BEGIN * 1_000_000, "benchmark", *rule, "owners.yaml") for rule in OWNERS])
    rollups = Rollups(store)
    first = (
        "a first run where all is there" if _one(store, "SELECT count() FROM rollup_hours") else "first run, all of it"
    )
    first_s, first_cpu_s = _seconds(rollups.run)
    print(f"first run of the rollups: {first_s:.0f} s, {first_cpu_s:.0f} s of CPU", file=sys.stderr, flush=True)
    _touch(store)
    minute_s, minute_cpu_s = _seconds(rollups.run)
    full_s, full_cpu_s = _seconds(lambda: rollups.run(full=True))
    counted = int(_one(store, "SELECT count() FROM segments"))
    shape = {
        "segments": counted,
        "hours of jobs": _one(store, "SELECT uniqExact(job, cell) FROM segments_log"),
        "rows of hours, corrections too": _one(store, "SELECT count() FROM segments_log"),
        "jobs": _one(store, "SELECT count() FROM jobs"),
        "attempts": _one(store, "SELECT count() FROM attempts"),
        "teams, models, clusters together": _one(store, "SELECT uniqExact(team, model, cluster) FROM rollup_days"),
        "days": HOURS // 24,
    }
    from_rollups: dict[str, float] = {}
    from_segments: dict[str, float] = {}
    cpu: dict[str, float] = {}
    other = []
    for question in questions():
        fast, slow = _whole(question, question.rollups), _whole(question, question.truth)
        answer: list[Table] = []
        slow_s, slow_cpu_s = _seconds(partial(_ask, store, slow, answer))
        if store.query(fast).rows != answer[0].rows:
            other.append(question.title)
        fast_s, fast_cpu_s = _time(store, fast, _RUNS)
        from_rollups[question.title] = fast_s * 1_000
        from_segments[question.title] = slow_s
        cpu[f"rollups: {question.title}"] = fast_cpu_s
        cpu[f"segments: {question.title}"] = slow_cpu_s
        print(f"{fast_s * 1_000:8.0f} ms {slow_s:8.2f} s  {question.title}", file=sys.stderr, flush=True)
    per_million = {table: _bytes(store, table) / 1e6 / (counted / 1e6) for table in _TABLES}
    results: dict[str, Any] = {
        "fleet": shape,
        "milliseconds from rollups": from_rollups,
        "seconds from segments": from_segments,
        "seconds of CPU, over all threads": cpu,
        "MB on disk per million segments": per_million,
        "answered otherwise": dict.fromkeys(other, "!"),
        "keeping the rollups": {
            "fill the tables (s)": filled_s,
            f"{first} (s)": first_s,
            f"{first} (s of CPU)": first_cpu_s,
            "a minute later, 1,000 jobs went on (s)": minute_s,
            "a minute later (s of CPU)": minute_cpu_s,
            "a full run that finds nothing (s)": full_s,
            "a full run (s of CPU)": full_cpu_s,
        },
    }
    limits = {
        f"at least {segments:,} segments": counted >= segments,
        "both ways give one answer": not other,
        f"from rollups, each in {_FROM_ROLLUPS_MS:.0f} ms": max(from_rollups.values()) <= _FROM_ROLLUPS_MS,
        f"from segments, each in {_FROM_SEGMENTS_S:.0f} s": max(from_segments.values()) <= _FROM_SEGMENTS_S,
    }
    save("rollups", results, limits)


def _touch(store: EmbeddedStore) -> None:
    """The last hours of the last thousand jobs are told anew, as by a sink."""
    columns = "job, cell, version, written, attempt, stage, start_us, length_us, gpus"
    now = int(time.time() * 1e6)
    store.command(
        f"INSERT INTO segments_log ({columns}) SELECT job, cell, version + 1, {now}, attempt, stage, start_us, "
        "length_us, gpus FROM segments_log WHERE cell >= (SELECT max(cell) FROM segments_log) - 86400 "
        "ORDER BY cell DESC, job LIMIT 1000"
    )


def _whole(question: Question, sql: str) -> str:
    """The question about all thirteen weeks instead of the two of the page, unless it asks for hours."""
    if "_hourly" in question.rollups:
        return sql
    made = sql
    for old, new in (("2026-09-14", "2026-07-06"), ("2026-09-27", "2026-10-04"), ("2026-09-28", "2026-10-05")):
        made = made.replace(f"'{old}'", f"'{new}'")
    if made == sql:
        raise ValueError(f"{question.title}: the days are others than the benchmark knows")
    return made


def _ask(store: EmbeddedStore, sql: str, answer: list[Table]) -> None:
    answer.append(store.query(sql))


def _time(store: EmbeddedStore, sql: str, runs: int) -> tuple[float, float]:
    """The median time of some runs, and of their times of CPU: where others use the machine, the two are far apart."""
    taken = [_seconds(lambda: store.query(sql)) for _ in range(runs)]
    return median(wall for wall, _ in taken), median(cpu for _, cpu in taken)


def _seconds(step: Callable[[], object]) -> tuple[float, float]:
    begun, cpu = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - begun, time.process_time() - cpu


def _one(store: EmbeddedStore, sql: str) -> Any:
    return store.query(sql).rows[0][0]


def _bytes(store: EmbeddedStore, table: str) -> int:
    found = _one(
        store,
        "SELECT sum(bytes_on_disk) FROM system.parts "
        f"WHERE active AND database = currentDatabase() AND table = '{table}'",
    )
    return int(found)


if __name__ == "__main__":
    main()
