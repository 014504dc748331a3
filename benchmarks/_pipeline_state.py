"""The state of live jobs: how fast a worker finds it again, how much memory it takes, how much is written for it."""

import time
from collections.abc import Iterator
from typing import Final

from _pipeline_load import HEAD, Record, job_head, now_us, preload, producer, progress
from _pipeline_run import pipeline
from support.kafka import Cluster
from support.pipeline_lag import sizes

__all__ = ["amplification", "recovery"]

_REPORT_US: Final = 15_000_000
_EMPTY_S: Final = 3.0
_UNPACKED: Final = 200_000
"""Events kept in memory with RocksDB: about 70 MB."""


def recovery(cluster: Cluster, prefix: str, store: str, jobs: int, reports: int) -> dict[str, float]:
    """Kill a worker that holds live jobs, and start it again: seconds until it works, and what it holds."""
    options = ["--store", store, "--session-timeout", "6s"]
    if store == "rocksdb":
        options += ["--states", str(_UNPACKED)]  # the rest stays on disk
    with pipeline(cluster.bootstrap, prefix, workers=1, sinks=0, worker_options=options) as made:
        (worker,) = made.workers
        worker.start()
        time.sleep(_EMPTY_S)
        empty = worker.resident()
        preload(cluster.bootstrap, made.names.events, _in_records(jobs, reports))
        made.drained_workers(900)
        time.sleep(20)  # the last of them are published
        full = worker.resident()
        worker.kill()
        time.sleep(8)  # the group has noticed
        begun = time.monotonic()
        worker.start(ready=False)
        worker.wait_ready(300)
        ready_s = time.monotonic() - begun
        read_s = worker.metrics().get("ettwatch_worker_recovery_seconds", 0.0)
        resident = worker.resident()
        time.sleep(15)
        settled = worker.resident()
        found = sum(value for name, value in worker.metrics().items() if "live_jobs" in name)
        records, size = sizes(cluster.bootstrap, made.names.state)
    return {
        "live_jobs": jobs,
        "events_per_job": reports + HEAD,
        "jobs_found": found,
        "ready_s": ready_s,
        "of_that_reading_state_s": read_s,
        "changelog_records": records,
        "changelog_mib": size / 2**20,
        "resident_empty_mib": empty / 2**20,
        "resident_per_job_before_kib": (full - empty) / 1024 / jobs,
        "resident_per_job_when_ready_kib": (resident - empty) / 1024 / jobs,
        "resident_per_job_later_kib": (settled - empty) / 1024 / jobs,
    }


def _in_records(jobs: int, reports: int) -> Iterator[Record]:
    """Yield each job's events in one record, as if it had been sent after an outage."""
    begin = now_us() - reports * _REPORT_US - 70_000_000
    for number in range(jobs):
        job = f"live-{number:06}"
        told = job_head(job, begin)
        told += [progress(job, n, begin + 60_000_000 + n * _REPORT_US) for n in range(1, reports + 1)]
        yield job.encode(), b"[" + b",".join(told) + b"]"


def amplification(cluster: Cluster, prefix: str, jobs: int, hours: float, flush_s: float) -> dict[str, float]:
    """Let hours pass for jobs that report every 15 s, one report of each job in each flush, as in real time.

    The flushes are shortened, and everything else that goes by the clock with them, so that hours take minutes. All
    that is written stays in the changelog until it is read back: nothing of it is compacted meanwhile.
    """
    reports = int(hours * 3_600_000_000 / _REPORT_US)
    step_s = 1.25 * flush_s
    options = ("--flush-every", f"{flush_s * 1000:.0f}ms", "--publish-every", f"{flush_s * 1000:.0f}ms")
    with pipeline(cluster.bootstrap, prefix, workers=1, sinks=0, worker_options=options) as made:
        (worker,) = made.workers
        worker.start()
        begin = now_us() - reports * _REPORT_US - 70_000_000
        names = [f"long-{number:04}" for number in range(jobs)]
        size = 0
        sender = producer(cluster.bootstrap, linger_ms=2)
        for name in names:
            for told in job_head(name, begin):
                sender.produce(made.names.events, told, name.encode())
                size += len(told)
        sender.flush(60)
        begun = time.monotonic()
        late_s = 0.0
        for number in range(1, reports + 1):
            ts = begin + 60_000_000 + number * _REPORT_US
            for name in names:
                told = progress(name, number, ts)
                sender.produce(made.names.events, told, name.encode())
                size += len(told)
            due = begun + number * step_s
            late_s = max(late_s, time.monotonic() - due)
            while (early := due - time.monotonic()) > 0:
                sender.poll(min(early, 0.005))
        sender.flush(60)
        made.drained_workers(600)
        metrics = worker.metrics()
        records, changelog = sizes(cluster.bootstrap, made.names.state)
        _, accepted = sizes(cluster.bootstrap, made.names.accepted)
        results = sum(
            sizes(cluster.bootstrap, topic)[1]
            for topic in (made.names.jobs, made.names.attempts, made.names.segments, made.names.phases)
        )
    return {
        "jobs": jobs,
        "simulated_hours": hours,
        "events": jobs * (reports + HEAD),
        "event_bytes": size,
        "flushes": metrics.get("ettwatch_worker_flush_seconds_count", 0.0),
        "publications": metrics.get("ettwatch_worker_published_total", 0.0),
        "changelog_records": records,
        "changelog_bytes": changelog,
        "changelog_bytes_per_event_byte": changelog / size,
        "changelog_records_per_event": records / (jobs * (reports + HEAD)),
        "result_bytes_per_event_byte": results / size,
        "accepted_bytes_per_event_byte": accepted / size,
        "sender_late_s": late_s,
    }
