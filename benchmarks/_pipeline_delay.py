"""From produced to readable: what passes between sending an event and finding it in ClickHouse, at a steady rate."""

import contextlib
import threading
import time
from random import Random
from typing import Final

from _pipeline_load import HEAD, Record, interleaved, line, now_us, preload, producer, progress
from _pipeline_run import children_cpu, pipeline
from ettwatch_clickhouse import Store
from support.kafka import Cluster
from support.pipeline_programs import until

__all__ = ["delays"]

_WATCHED: Final = 16
"""Jobs whose events are followed to their rows."""

_WATCHED_PER_S: Final = 2.5
_LOOK_S: Final = 0.4
"""Between two looks; each is a load of its own."""

_LINGER_MS: Final = 50
"""A fleet's small sends go to many brokers' disks; here they would take from the two cores what is to be measured."""

_BOUNDARY: Final = 0.05
"""Share of events that are boundaries: begin or end of a phase."""


def _watched(number: int) -> str:
    return f"watched-{number:02}"


class _Sender(threading.Thread):
    """Sends at a rate: reports of many jobs, boundaries among them, and boundaries of the watched jobs."""

    def __init__(self, bootstrap: str, topic: str, rate: int, jobs: int, seconds: float) -> None:
        super().__init__(daemon=True)
        self._producer = producer(bootstrap, linger_ms=_LINGER_MS)
        self._topic = topic
        self._rate = rate
        self._seconds = seconds
        self.jobs = jobs
        self.sent: dict[tuple[str, int], float] = {}
        self.late_s = 0.0
        self.count = 0

    def run(self) -> None:
        dice = Random(1)
        background = self._rate - _WATCHED * _WATCHED_PER_S
        begun = time.monotonic()
        watched = 0
        numbers = [1] * self.jobs
        opened: dict[str, int] = {}
        while (at := time.monotonic() - begun) < self._seconds:
            while watched < at * _WATCHED * _WATCHED_PER_S:
                self._watched(watched)
                watched += 1
            due = int(at * background)
            while self.count < due:
                job = self.count % self.jobs
                name = f"bench-{job:06}"
                number, numbers[job] = numbers[job], numbers[job] + 1
                value = progress(name, 1_000 + number, now_us())
                if dice.random() < _BOUNDARY:
                    value = _boundary(name, number, opened)
                self._producer.produce(self._topic, value, name.encode())
                self.count += 1
                if not self.count % 200:
                    self._producer.poll(0)
                    self.late_s = max(self.late_s, time.monotonic() - begun - self.count / background)
            self._producer.poll(0.002)
        self._producer.flush(60)

    def _watched(self, number: int) -> None:
        name, turn = _watched(number % _WATCHED), number // _WATCHED
        kind = ("phase_started", "phase_ended")[turn % 2]
        more = f',"attempt":0,"span":"w{turn // 2}"'
        more += ',"phase":"wasted_training.evaluation"' if kind == "phase_started" else ',"outcome":"ok"'
        self.sent[name, turn] = time.monotonic()
        self._producer.produce(self._topic, line(name, 10_000 + turn, kind, now_us(), more), name.encode())


def _boundary(job: str, number: int, opened: dict[str, int]) -> bytes:
    """Return the end of the phase that is open in a job, else the begin of one."""
    begun = opened.pop(job, None)
    if begun is None:
        opened[job] = number
        more = f',"attempt":0,"span":"b{number}","phase":"wasted_training.evaluation"'
        return line(job, 100_000 + number, "phase_started", now_us(), more)
    return line(job, 100_000 + number, "phase_ended", now_us(), f',"attempt":0,"span":"b{begun}","outcome":"ok"')


class _Reader(threading.Thread):
    """Looks all the time which of the watched events are rows, and which are in the rows of their jobs."""

    def __init__(self, store: Store) -> None:
        super().__init__(daemon=True)
        self._store = store
        self._jobs = [_watched(number) for number in range(_WATCHED)]
        self.halt = threading.Event()
        self.seen_events: dict[tuple[str, int], float] = {}
        self.seen_jobs: dict[tuple[str, int], float] = {}

    def run(self) -> None:
        known = dict.fromkeys(self._jobs, 0)
        told = dict.fromkeys(self._jobs, 0)
        while not self.halt.wait(_LOOK_S):
            rows = self._store.query(
                "SELECT job, count() FROM events WHERE job IN {jobs:Array(String)} AND kind LIKE 'phase_%' "
                "AND id NOT LIKE '%-_' GROUP BY job",
                {"jobs": self._jobs},
            ).rows
            self._note(rows, known, self.seen_events, 0)
            rows = self._store.query(
                "SELECT job, events FROM jobs WHERE job IN {jobs:Array(String)}", {"jobs": self._jobs}
            ).rows
            self._note(rows, told, self.seen_jobs, HEAD)

    @staticmethod
    def _note(
        rows: list[tuple[object, ...]], known: dict[str, int], seen: dict[tuple[str, int], float], before: int
    ) -> None:
        at = time.monotonic()
        for job, count in rows:
            assert isinstance(count, int)
            for turn in range(known[str(job)], count - before):
                seen[str(job), turn] = at
            known[str(job)] = max(known[str(job)], count - before)


def delays(cluster: Cluster, prefix: str, rate: int, live: int, seconds: float, workers: int = 1) -> dict[str, float]:
    """Measure at a rate (events/s, of all jobs together) for some seconds, after all jobs have begun."""
    with pipeline(cluster.bootstrap, prefix, workers=workers, sinks=1) as made:
        sender = _Sender(cluster.bootstrap, made.names.events, rate, live, seconds)
        heads: list[Record] = list(interleaved(sender.jobs, 0, now_us()))
        for key, value in interleaved(_WATCHED, 0, now_us(), "watched"):
            heads.append((key.replace(b"watched-0000", b"watched-"), value.replace(b"watched-0000", b"watched-")))
        preload(cluster.bootstrap, made.names.events, heads)
        for program in [*made.workers, *made.sinks]:
            program.start()
        made.drained(600)
        time.sleep(20)  # what was told of the heads is published
        cpu = {"brokers": children_cpu("kafka.Kafka"), "clickhouse": children_cpu("ettwatch_clickhouse import")}
        cpu |= {"worker": sum(w.cpu_s() for w in made.workers), "sink": made.sinks[0].cpu_s()}
        with contextlib.closing(made.house.store()) as store:
            reader = _Reader(store)
            reader.start()
            sender.start()
            sender.join()
            with contextlib.suppress(AssertionError):
                until("all is readable", lambda: len(reader.seen_jobs) >= len(sender.sent), 60)
            reader.halt.set()
            reader.join()
        after = {"brokers": children_cpu("kafka.Kafka"), "clickhouse": children_cpu("ettwatch_clickhouse import")}
        after |= {"worker": sum(w.cpu_s() for w in made.workers), "sink": made.sinks[0].cpu_s()}
        memory = sum(worker.resident() for worker in made.workers)
    events = sorted(reader.seen_events[each] - at for each, at in sender.sent.items() if each in reader.seen_events)
    jobs = sorted(reader.seen_jobs[each] - at for each, at in sender.sent.items() if each in reader.seen_jobs)
    return {
        "events_per_s": sender.count / seconds,
        "live_jobs": sender.jobs,
        "followed": len(sender.sent),
        "never_seen": len(sender.sent) - min(len(events), len(jobs)),
        "event_p50_s": _at(events, 0.5),
        "event_p99_s": _at(events, 0.99),
        "job_p50_s": _at(jobs, 0.5),
        "job_p99_s": _at(jobs, 0.99),
        "sender_late_s": sender.late_s,
        "worker_resident_mib": memory / 2**20,
        **{f"cores_{name}": (after[name] - used) / seconds for name, used in cpu.items()},
    }


def _at(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("inf")
