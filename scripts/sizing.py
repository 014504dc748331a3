"""Writes the tables of docs/sizing.md: what 1,000, 10,000 and 100,000 GPUs need, from the figures that were measured.

usage: python scripts/sizing.py [--check]

The figures come from benchmarks/results/pipeline.json, by the paths in FIGURES. One that is not there yet is assumed,
and the page says so. --check writes nothing, and exits 1 if the page is not what would be written.
"""

import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "sizing.md"
RESULTS: Final = ROOT / "benchmarks" / "results" / "pipeline.json"
FLEETS: Final = (1_000, 10_000, 100_000)
GIB: Final = 1 << 30
DAY: Final = 86_400


class Figure(NamedTuple):
    """One figure that is measured.

    Attributes:
        path: Where it stands below "results" in pipeline.json; figures may be multiplied and divided.
        assumed: What is taken until it is measured there.
        meaning: What it says, with its unit.
    """

    path: str
    assumed: float
    meaning: str


FIGURES: Final[Mapping[str, Figure]] = {
    "worker_rate": Figure("singles.worker_events_per_s", 5_000, "events a second, one worker, one event a message"),
    "batched_rate": Figure("arrays.worker_events_per_s", 50_000, "events a second, one worker, fifty in a message"),
    "sink_rate": Figure("singles.rows_events_per_s", 10_000, "events a second through a worker and a sink, to rows"),
    "event_bytes": Figure("singles.event_bytes/singles.events", 300, "bytes of an event on the wire"),
    "state_factor": Figure("writes.changelog_bytes_per_event_byte", 3, "changelog bytes for each byte of events"),
    "result_factor": Figure("writes.result_bytes_per_event_byte/2", 4, "bytes of results for each byte of events"),
    "memory_job": Figure(
        "recovery.rocksdb_resident_per_job_later_kib*1024",
        8_192,
        "bytes of a worker's memory for each live job, RocksDB",
    ),
    "state_job": Figure("core.state_bytes", 45_000, "bytes of stored state of a job that reports every 15 s"),
    "recovery": Figure("recovery.rocksdb_ready_s", 30, "seconds until a worker is ready, 20,000 live jobs"),
    "read_rate": Figure(
        "recovery.rocksdb_changelog_mib*1048576/recovery.rocksdb_of_that_reading_state_s",
        5e7,
        "bytes of state read a second",
    ),
    "row_bytes": Figure("clickhouse.bytes_per_event", 120, "bytes on ClickHouse's disk for each event, all tables"),
}


class Load(NamedTuple):
    """What a fleet is taken to do. Change it to what yours does.

    Attributes:
        gpus_a_job: GPUs of a job.
        report_s: Seconds between two reports of progress of a job.
        beat_s: Seconds between two heartbeats of a launcher, one for each machine of eight GPUs.
        starts: Attempts of each job a day.
        start_events: Events of all ranks around one start and end.
        peak: Size for this many times the mean: after an hour of standing still the rest is made up in
            1 / (peak - 1) hours.
        kept_days: Days that Kafka keeps.
        stored_days: Days that ClickHouse keeps.
        copies: Copies in Kafka.
    """

    gpus_a_job: int = 8
    report_s: float = 15
    beat_s: float = 60
    starts: float = 2
    start_events: float = 400
    peak: float = 4
    kept_days: int = 7
    stored_days: int = 400
    copies: int = 3


class Need(NamedTuple):
    """What a fleet needs. Sizes in bytes."""

    jobs: int
    rate: float
    workers: int
    partitions: int
    worker_memory: float
    worker_disk: float
    recovery_s: float
    sinks: int
    kafka_rate: float
    kafka_disk: float
    clickhouse_disk: float


def figures(results: Mapping[str, Any]) -> dict[str, tuple[float, bool]]:
    """Return each figure, and whether it was measured."""
    return {name: _found(results, figure) for name, figure in FIGURES.items()}


def _found(results: Mapping[str, Any], figure: Figure) -> tuple[float, bool]:
    value = 1.0
    for part in re.findall(r"[*/]?[^*/]+", figure.path):
        term = part.lstrip("*/")
        number = float(term) if term.isdecimal() else _at(results, term)
        if number is None:
            return figure.assumed, False
        value = value / number if part[0] == "/" else value * number
    return value, True


def _at(results: Mapping[str, Any], path: str) -> float | None:
    place: Any = results
    for part in path.split("."):
        place = place.get(part) if isinstance(place, Mapping) else None
    return float(place) if isinstance(place, int | float) and place else None


def need(gpus: int, figure: Mapping[str, float], load: Load = Load()) -> Need:  # noqa: B008 (a constant)
    """Return what a fleet needs. docs/sizing.md says the same in words."""
    jobs = math.ceil(gpus / load.gpus_a_job)
    machines = math.ceil(gpus / 8)
    rate = jobs / load.report_s + machines / load.beat_s + jobs * load.starts * load.start_events / DAY
    workers = max(2, math.ceil(load.peak * rate / figure["worker_rate"]))
    bytes_s = rate * figure["event_bytes"]
    kept = bytes_s * (2 + figure["result_factor"]) * DAY * load.kept_days  # events, accepted events, results
    return Need(
        jobs=jobs,
        rate=rate,
        workers=workers,
        partitions=max(12, 1 << math.ceil(math.log2(workers * 4))),
        worker_memory=1.5 * GIB + jobs / workers * figure["memory_job"],
        worker_disk=10 * jobs / workers * figure["state_job"],
        recovery_s=figure["recovery"] + jobs / workers * figure["state_job"] / figure["read_rate"],
        sinks=max(1, math.ceil(load.peak * rate * 2 / figure["sink_rate"])),
        kafka_rate=bytes_s * (2 + figure["result_factor"] + figure["state_factor"]),
        kafka_disk=load.copies * (kept + 3 * jobs * figure["state_job"]),
        clickhouse_disk=rate * DAY * load.stored_days * figure["row_bytes"],
    )


def tables(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables of the page by their names."""
    found = figures(results)
    known = ["| figure | value | | meaning |", "|---|---|---|---|"]
    for name, (value, measured) in found.items():
        told = "measured" if measured else "assumed"
        known.append(f"| `{name}` | {_number(value)} | {told} | {FIGURES[name].meaning} |")
    needs = [need(gpus, {name: value for name, (value, _) in found.items()}) for gpus in FLEETS]
    rows = [
        ("live jobs", [_number(each.jobs) for each in needs]),
        ("events a second, mean", [_number(each.rate) for each in needs]),
        ("workers, 1 core each", [_number(each.workers) for each in needs]),
        ("partitions", [_number(each.partitions) for each in needs]),
        ("memory of a worker", [_size(each.worker_memory) for each in needs]),
        ("volume of a worker", [_size(each.worker_disk) for each in needs]),
        ("recovery without a volume", [f"{max(1, math.ceil(each.recovery_s))} s" for each in needs]),
        ("sinks", [_number(each.sinks) for each in needs]),
        ("into Kafka a second", [_size(each.kafka_rate) for each in needs]),
        ("Kafka's disks, all copies", [_size(each.kafka_disk) for each in needs]),
        ("ClickHouse's disk, one copy", [_size(each.clickhouse_disk) for each in needs]),
    ]
    wanted = [f"| GPUs | {' | '.join(f'{gpus:,}' for gpus in FLEETS)} |", "|---|---|---|---|"]
    wanted += [f"| {name} | {' | '.join(values)} |" for name, values in rows]
    return {"figures": "\n".join(known), "needs": "\n".join(wanted)}


def written(page: str, made: Mapping[str, str]) -> str:
    """Return the page with its tables put in. Raises ValueError where the page has no place for one."""
    for name, table in made.items():
        begin, end = f"<!-- {name}: scripts/sizing.py -->", f"<!-- end of {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"docs/sizing.md has no place for the table: {begin} and {end}")
        page = page[: page.index(begin) + len(begin)] + f"\n{table}\n" + page[page.index(end) :]
    return page


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2g}"


def _size(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


def main(argv: list[str]) -> int:
    """Write the page, or check it. Returns the exit code."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))["results"] if RESULTS.exists() else {}
    page = PAGE.read_text(encoding="utf-8")
    new = written(page, tables(results))
    if "--check" in argv:
        if new != page:
            print("docs/sizing.md is out of date: run python scripts/sizing.py", file=sys.stderr)
        return int(new != page)
    PAGE.write_text(new, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
