"""The pipeline from Kafka to rows: rates with the share of each layer, delays, recovery, memory, write amplification.

Writes benchmarks/results/pipeline.json; with --only the other parts stay as they are there.
Run: python benchmarks/pipeline.py [--only singles arrays ...] [--scale 1.0]
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from _common import RESULTS, save

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from _pipeline_delay import delays
from _pipeline_layers import bare_aiokafka, bare_confluent, core_alone, inside, plain_faust
from _pipeline_load import arrays, interleaved, now_us, preload
from _pipeline_run import Backlog, pipeline, run_backlog
from _pipeline_state import amplification, recovery
from support.kafka import Cluster
from support.pipeline_faults import FAULTS
from support.pipeline_runs import Size, report, run_fault

VERSIONS: Final = ("3.9.1", "4.3.1")
PARTITIONS: Final = 4
_LIVE: Final = 10_000
Part = Callable[[Cluster, float], dict[str, Any]]


def told(run: Backlog) -> dict[str, Any]:
    """What a run says."""
    figures: dict[str, Any] = {
        "events": run.events,
        "records": run.records,
        "event_bytes": run.size,
        "worker_ready_s": run.ready_s,
        "worker_events_per_s": run.events / run.worker_s,
        "worker_records_per_s": run.records / run.worker_s,
    }
    if run.rows_s is not None:
        figures["rows_events_per_s"] = run.events / run.rows_s
    for name, seconds in run.cpu_s.items():
        figures[f"{name}_cpu_us_per_event"] = 1e6 * seconds / run.events
    for name, value in run.metrics.items():
        if "busy_seconds_total" in name:
            figures["busy_us_per_event_" + name.split('"')[1]] = 1e6 * value / run.events
    return figures


def singles(cluster: Cluster, scale: float) -> dict[str, Any]:
    """Records of one event through one worker, to rows and without a sink."""
    jobs, reports = int(3_000 * scale), 60
    events = jobs * (reports + 11)

    def load() -> Any:
        return interleaved(jobs, reports, now_us())

    rows = told(run_backlog(cluster, "bench-singles-rows", load(), events))
    alone = told(run_backlog(cluster, "bench-singles", load(), events, sink=False))
    return {
        **rows,
        **{f"without_sink_{name}": value for name, value in alone.items()},
        **{f"layer_{name}": value for name, value in inside(load(), 10_000).items()},
    }


def in_arrays(cluster: Cluster, scale: float) -> dict[str, Any]:
    """Records of fifty events through one worker, beside the core alone on the same records."""
    jobs, reports = int(3_000 * scale), 289
    events = jobs * (reports + 11)

    def load() -> Any:
        return arrays(interleaved(jobs, reports, now_us()), 50)

    core = core_alone(load())
    rows = told(run_backlog(cluster, "bench-arrays-rows", load(), events))
    alone = told(run_backlog(cluster, "bench-arrays", load(), events, sink=False))
    shares: dict[str, float] = {}
    for name in ("fold", "results"):
        rate = core[f"{name}_per_s"]
        shares |= {
            f"core_{name}_events_per_s": rate,
            f"rows_share_of_core_{name}": rows["rows_events_per_s"] / rate,
            f"without_sink_share_of_core_{name}": alone["worker_events_per_s"] / rate,
        }
    return {
        **shares,
        **rows,
        **{f"without_sink_{name}": value for name, value in alone.items()},
        **{f"layer_{name}": value for name, value in inside(load(), 60_000).items()},
    }


def readers(cluster: Cluster, scale: float) -> dict[str, Any]:
    """Other readers of the same topic of records of one event."""
    jobs, reports = int(3_000 * scale), 60
    with pipeline(cluster.bootstrap, "bench-readers", workers=0, sinks=0) as made:
        topic = made.names.events
        records, _ = preload(cluster.bootstrap, topic, interleaved(jobs, reports, now_us()))
        where = (cluster.bootstrap, topic, records, PARTITIONS)
        few = (cluster.bootstrap, topic, records // 4, PARTITIONS)
        return {
            "aiokafka_records_per_s": bare_aiokafka(*where)["records_per_s"],
            "confluent_records_per_s": bare_confluent(*where)["records_per_s"],
            "plain_faust_records_per_s": plain_faust(*few)["records_per_s"],
            "empty_faust_records_per_s": plain_faust(*few, "--bare")["records_per_s"],
        }


def delay(cluster: Cluster, scale: float) -> dict[str, Any]:
    """From produced to readable, at two rates, with as many live jobs as 80,000 GPUs may have."""
    found: dict[str, Any] = {}
    for rate in (1_000, 5_000):
        measured = delays(cluster, f"bench-delay-{rate}", int(rate * scale), int(_LIVE * scale), 60)
        found |= {f"at_{rate}_{name}": value for name, value in measured.items()}
    return found


def recover(cluster: Cluster, scale: float) -> dict[str, Any]:
    """A worker that comes back to 20,000 live jobs, with either store."""
    found: dict[str, Any] = {}
    for store in ("memory", "rocksdb"):
        measured = recovery(cluster, f"bench-recovery-{store}", store, int(20_000 * scale), 60)
        found |= {f"{store}_{name}": value for name, value in measured.items()}
    return found


def two(cluster: Cluster, scale: float) -> dict[str, Any]:
    """Two workers against one, without a sink."""
    found: dict[str, Any] = {}
    for name, size, reports in (("singles", 1, 60), ("arrays", 50, 289)):
        jobs = int(3_000 * scale)
        rates = []
        for workers in (1, 2):
            load = interleaved(jobs, reports, now_us())
            records = load if size == 1 else arrays(load, size)
            events = jobs * (reports + 11)
            prefix = f"bench-two-{name}-{workers}"
            run = run_backlog(cluster, prefix, records, events, workers=workers, sink=False)
            rates.append(run.events / run.worker_s)
        found |= {f"{name}_one_events_per_s": rates[0], f"{name}_two_events_per_s": rates[1]}
        found[f"{name}_factor"] = rates[1] / rates[0]
    return found


def writes(cluster: Cluster, scale: float) -> dict[str, Any]:
    """Eight hours of jobs that report every 15 s."""
    return amplification(cluster, "bench-writes", int(60 * scale), 8, 0.05)


def versions(cluster: Cluster, scale: float) -> dict[str, Any]:
    """The rows are right on the oldest and the newest supported Kafka."""
    found: dict[str, Any] = {}
    for version in VERSIONS:
        os.environ["ETTWATCH_TEST_KAFKA_VERSION"] = version
        try:
            with tempfile.TemporaryDirectory() as folder, Cluster() as brokers:
                size = Size(int(200 * scale), 15, 1, 3, 180)
                run = run_fault(FAULTS[0], brokers, Path(folder), "bench-version", size, seed=3)
        finally:
            del os.environ["ETTWATCH_TEST_KAFKA_VERSION"]
        figures = report(run)
        found |= {f"{version}_{name}": figures[name] for name in ("events", "rows", "differences", "seconds")}
    return found


PARTS: Final[dict[str, Part]] = {
    "singles": singles,
    "arrays": in_arrays,
    "readers": readers,
    "delay": delay,
    "recovery": recover,
    "two_workers": two,
    "writes": writes,
    "versions": versions,
}


def limits(results: dict[str, Any]) -> dict[str, bool]:
    """What was aimed at, and whether it is reached; of parts that were measured."""
    aims: list[tuple[str, str, str, Callable[[float], bool]]] = [
        ("records of one event: 10,000 events/s to rows", "singles", "rows_events_per_s", lambda v: v >= 10_000),
        *(
            (
                f"records of 50 events: 60 % of the core ({what}) to rows",
                "arrays",
                f"rows_share_of_core_{name}",
                lambda v: v >= 0.6,
            )
            for name, what in (("fold", "decoding and folding"), ("results", "and one drawing of each job"))
        ),
        ("1,000 events/s: event to row p99 at most 2 s", "delay", "at_1000_event_p99_s", lambda v: v <= 2),
        ("1,000 events/s: boundary to job p99 at most 2 s", "delay", "at_1000_job_p99_s", lambda v: v <= 2),
        ("5,000 events/s: event to row p99 at most 2 s", "delay", "at_5000_event_p99_s", lambda v: v <= 2),
        ("5,000 events/s: boundary to job p99 at most 2 s", "delay", "at_5000_job_p99_s", lambda v: v <= 2),
        ("recovery in memory at most 30 s", "recovery", "memory_ready_s", lambda v: v <= 30),
        ("recovery with RocksDB at most 30 s", "recovery", "rocksdb_ready_s", lambda v: v <= 30),
        ("RocksDB: at most 8 KiB a job", "recovery", "rocksdb_resident_per_job_later_kib", lambda v: v <= 8),
        ("changelog: at most 3 bytes an event byte", "writes", "changelog_bytes_per_event_byte", lambda v: v <= 3),
    ]
    return {text: held(results[part][name]) for text, part, name, held in aims if name in results.get(part, {})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="of jobs and rates: below 1 for a quick look")
    options = parser.parse_args()
    path = RESULTS / "pipeline.json"
    results: dict[str, Any] = json.loads(path.read_text())["results"] if options.only and path.exists() else {}
    for name in options.only or PARTS:
        print(f"{name}: {PARTS[name].__doc__} ...", flush=True)
        with Cluster() as cluster:
            results[name] = PARTS[name](cluster, options.scale)
        print(json.dumps(results[name], indent=1), flush=True)
    save("pipeline", {name: results[name] for name in PARTS if name in results}, limits(results))


if __name__ == "__main__":
    main()
