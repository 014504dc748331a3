"""Runs of the pipeline over a topic that is full already: how fast, and who used the processor."""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _pipeline_load import Record, interleaved, now_us, preload
from ettwatch_clickhouse import Store
from support.kafka import Cluster
from support.pipeline import Pipeline
from support.pipeline_programs import Program, until

__all__ = ["Backlog", "children_cpu", "pipeline", "run_backlog"]

_MOST_S = 900
_SETTLE_S = 8


@contextmanager
def pipeline(bootstrap: str, prefix: str, **options: Any) -> Iterator[Pipeline]:
    """A pipeline of which nothing is started."""
    with (
        tempfile.TemporaryDirectory(prefix="ettwatch-bench-") as folder,
        Pipeline(bootstrap, Path(folder), prefix, start=False, **options) as made,
    ):
        yield made


def children_cpu(word: str) -> float:
    """Return the processor seconds of the children of this process whose command line holds a word."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == os.getpid() and word.encode() in (folder / "cmdline").read_bytes():
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Backlog:
    """What a run over a full topic gave. Seconds are those from when the workers were let go.

    Attributes:
        events: How many events there were.
        records: In how many records.
        size: Their bytes.
        ready_s: From the start of the programs to their being ready.
        worker_s: Until the workers had committed all.
        rows_s: Until all events were readable as rows; None without a sink.
        cpu_s: Processor seconds by process.
        metrics: Of the workers, summed up.
    """

    events: int
    records: int
    size: int
    ready_s: float
    worker_s: float
    rows_s: float | None
    cpu_s: dict[str, float]
    metrics: dict[str, float] = field(default_factory=dict)


def run_backlog(
    cluster: Cluster,
    prefix: str,
    records: Iterable[Record],
    events: int,
    *,
    workers: int = 1,
    sink: bool = True,
    worker_options: Sequence[str] = (),
) -> Backlog:
    """Start workers (and a sink), stop them where they are while the topic is filled, and time what follows."""
    held = list(records)
    with pipeline(cluster.bootstrap, prefix, workers=workers, sinks=int(sink), worker_options=worker_options) as made:
        programs = [*made.workers, *made.sinks]
        begun = time.monotonic()
        for program in programs:
            program.start(ready=False)
        for program in programs:
            program.wait_ready()
        ready = time.monotonic()
        # The first records bring in what is loaded on first use (pandas, where it is installed): a service has it.
        warm, _ = preload(cluster.bootstrap, made.names.events, interleaved(50, 5, now_us(), "warm"))
        if sink:
            with contextlib.closing(made.house.store()) as store:
                until("the first events are rows", lambda: _count(store) >= warm, _MOST_S, 0.2)
        # Whoever came first has handed over to the others by then.
        time.sleep(_SETTLE_S)
        for program in made.workers:
            program.wait_ready()
            program.freeze()
        count, size = preload(cluster.bootstrap, made.names.events, held)
        before = _used(made)
        thawed = time.monotonic()
        for worker in made.workers:
            worker.thaw()
        with made.worker_group() as group, contextlib.closing(made.house.store()) as store:
            until("the workers are through", lambda: group.behind() == 0, _MOST_S, 0.1)
            committed = time.monotonic()
            cpu = _used(made)
            metrics = _summed(made.workers)
            readable = None
            if sink:
                until("all events are rows", lambda: _count(store) >= events + warm, _MOST_S, 0.2)
                readable = time.monotonic() - thawed
                cpu = _used(made) | {"worker": cpu["worker"]}
        used = {name: seconds - before[name] for name, seconds in cpu.items()}
    return Backlog(events, count, size, ready - begun, committed - thawed, readable, used, metrics)


def _used(made: Pipeline) -> dict[str, float]:
    """Return the processor seconds used so far, by program."""
    return {
        "worker": sum(worker.cpu_s() for worker in made.workers),
        "sink": sum(sink.cpu_s() for sink in made.sinks),
        "brokers": children_cpu("kafka.Kafka"),
        "clickhouse": children_cpu("ettwatch_clickhouse import"),
    }


def _count(store: Store) -> int:
    number = store.query("SELECT count() FROM events_log").rows[0][0]
    assert isinstance(number, int)
    return number


def _summed(programs: Iterable[Program]) -> dict[str, float]:
    total: dict[str, float] = {}
    for program in programs:
        for name, value in program.metrics().items():
            total[name] = total.get(name, 0.0) + value
    return total
