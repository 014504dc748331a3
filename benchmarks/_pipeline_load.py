"""What the benchmarks of the pipeline send: jobs that report every 15 s, with what happens at their boundaries."""

import time
from collections.abc import Iterable, Iterator
from typing import Final

from confluent_kafka import Producer

__all__ = ["EVERY_US", "Record", "arrays", "finished", "interleaved", "job_head", "now_us", "preload", "progress"]

Record = tuple[bytes, bytes]
"""Key and value."""

EVERY_US: Final = 15_000_000
HEAD: Final = 11
"""Events of `job_head`."""

_PHASES: Final = ("device_init", "process_group_init", "train_module_creation", "get_first_batch_data")


def now_us() -> int:
    """Return the time in µs."""
    return time.time_ns() // 1_000


def line(job: str, number: int, kind: str, ts: int, more: str = "") -> bytes:
    """Return one event, as a producer spells it."""
    return f'{{"v":1,"id":"{job}-{number}","kind":"{kind}","job":"{job}","ts":{ts}{more}}}'.encode()


def job_head(job: str, begin: int) -> list[bytes]:
    """Return the events of a job up to its first step, within a minute."""
    at = begin
    rows = [
        line(job, 0, "job_submitted", at, ',"team":"ads","model":"ctr","cluster":"c1","gpus":8'),
        line(job, 1, "attempt_started", at + 1_000_000, ',"attempt":0,"gpus":8,"world_size":8'),
    ]
    for number, phase in enumerate(_PHASES):
        at += 10_000_000
        span = f',"attempt":0,"rank":0,"span":"s{number}"'
        rows.append(line(job, len(rows), "phase_started", at, f'{span},"phase":"trainer_init.{phase}"'))
        rows.append(line(job, len(rows), "phase_ended", at + 9_000_000, f'{span},"outcome":"ok"'))
    more = ',"attempt":0,"position":0,"step":0,"report_every_s":30'
    rows.append(line(job, len(rows), "training_started", at + 10_000_000, more))
    return rows


def progress(job: str, number: int, ts: int) -> bytes:
    """Return report `number` of a job, from 1."""
    more = f',"attempt":0,"rank":0,"host":"trainer-17","position":{number * 100_000},"step":{number * 40}'
    return line(job, HEAD + number, "progress", ts, f'{more},"data_wait_us":{number * 300_000}')


def interleaved(jobs: int, reports: int, end: int, name: str = "bench") -> Iterator[Record]:
    """Yield the events of jobs that run side by side, each event by itself, the newest at `end` (µs)."""
    begin = end - reports * EVERY_US - 70_000_000
    names = [f"{name}-{i:06}" for i in range(jobs)]
    keys = [each.encode() for each in names]
    heads = [job_head(each, begin) for each in names]
    for number in range(HEAD):
        yield from ((key, head[number]) for key, head in zip(keys, heads, strict=True))
    for number in range(1, reports + 1):
        ts = begin + 70_000_000 + number * EVERY_US - 1_000_000
        yield from ((key, progress(each, number, ts)) for key, each in zip(keys, names, strict=True))


def arrays(records: Iterable[Record], size: int) -> Iterator[Record]:
    """Yield records of `size` events each, of one job, in the order in which they are full."""
    waiting: dict[bytes, list[bytes]] = {}
    for key, value in records:
        mine = waiting.setdefault(key, [])
        mine.append(value)
        if len(mine) == size:
            yield key, b"[" + b",".join(mine) + b"]"
            mine.clear()
    for key, mine in waiting.items():
        if mine:
            yield key, b"[" + b",".join(mine) + b"]"


def producer(bootstrap: str, linger_ms: int = 20) -> Producer:
    """Return a producer that puts keys where Kafka's own clients put them."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "linger.ms": linger_ms,
            "acks": "all",
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 2,
        }
    )


def preload(bootstrap: str, topic: str, records: Iterable[Record]) -> tuple[int, int]:
    """Send records as fast as it goes; return how many, and their bytes."""
    sender = producer(bootstrap)
    count = size = 0
    for key, value in records:
        count += 1
        size += len(value)
        while True:
            try:
                sender.produce(topic, value, key)
                break
            except BufferError:
                sender.poll(0.1)
        if not count % 1_000:
            sender.poll(0)
    if left := sender.flush(120):
        raise SystemExit(f"{left} records were not taken")
    return count, size


def finished(job: str, number: int, ts: int) -> list[bytes]:
    """Return the last events of a job."""
    return [
        line(job, number, "attempt_ended", ts, ',"attempt":0,"outcome":"succeeded"'),
        line(job, number + 1, "job_ended", ts, ',"outcome":"succeeded"'),
    ]
