"""The layers of a worker one by one, and other readers of a topic: the core alone, bare consumers, a plain agent."""

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as Place

from _pipeline_load import Record, now_us
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_faust import names
from ettwatch_faust.intake import Origin, read
from ettwatch_faust.lane import Lane
from ettwatch_faust.outputs import publication
from ettwatch_faust.settings import WorkerSettings
from ettwatch_schemas import decode_message

__all__ = ["bare_aiokafka", "bare_confluent", "core_alone", "inside", "plain_faust"]

_FLUSH_US = 500_000


class _Part(dict[bytes, bytes]):
    """A partition of the table, in memory."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:  # type: ignore[override]
        yield from super().items()


def core_alone(records: Iterable[Record]) -> dict[str, float]:
    """Decode and fold all records in this process, then draw each job once, as `ettwatch replay` does."""
    held = list(records)
    rules = Rules()
    states: dict[str, JobState] = {}
    events = 0
    gc.collect()
    gc.freeze()
    begun = time.perf_counter()
    for _, value in held:
        for event in decode_message(value).events:
            state = states.get(event.job)
            if state is None:
                state = states[event.job] = JobState(event.job)
            apply(state, event, rules)
            events += 1
    folded = time.perf_counter() - begun
    for state in states.values():
        snapshot(state, rules, keep=False)
    drawn = time.perf_counter() - begun
    gc.unfreeze()
    return {"events": events, "fold_per_s": events / folded, "results_per_s": events / drawn}


def inside(records: Iterable[Record], events_per_s: float) -> dict[str, float]:
    """Run a worker's own layers over records without Kafka, flushing as often as at a rate; µs for each event."""
    held = list(records)
    settings = WorkerSettings.read({"ETTWATCH_KAFKA": "127.0.0.1:9"})
    table = _Part()
    lane = Lane(table, settings.policy, 1)
    called = names("bench")
    took = {"decode": 0.0, "fold": 0.0, "publish": 0.0, "state": 0.0}
    clock = time.process_time
    since, events, size, sent = 0, 0, 0, 0
    per_flush = events_per_s * _FLUSH_US / 1e6
    began_us = now_us()
    gc.collect()
    gc.freeze()

    def flush() -> None:
        nonlocal size, sent
        at_us = began_us + int(events / events_per_s * 1e6)
        a = clock()
        for told in lane.publish(at_us, behind=False, go_on=lambda: True):
            sent += sum(len(out.value or b"") for out in publication(called, 0, told))
        b = clock()
        writes = lane.writes(at_us)
        for key, value in writes:
            size += len(key) + len(value or b"")
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
        c = clock()
        took["publish"] += b - a
        took["state"] += c - b

    for offset, (key, value) in enumerate(held):
        a = clock()
        taken = read(Origin("bench", 0, offset, key, value, began_us))
        b = clock()
        assert taken.job is not None
        lane.take(taken.job, taken.events, offset, began_us + int(events / events_per_s * 1e6))
        took["fold"] += clock() - b
        took["decode"] += b - a
        events += len(taken.events)
        since += len(taken.events)
        if since >= per_flush:
            since = 0
            flush()
    flush()
    gc.unfreeze()
    told = {f"{name}_us": 1e6 * seconds / events for name, seconds in took.items()}
    return told | {"events": events, "state_bytes_per_event": size / events, "result_bytes_per_event": sent / events}


def bare_aiokafka(bootstrap: str, topic: str, records: int, partitions: int) -> dict[str, float]:
    """Read a topic by aiokafka's getmany, and do nothing with it."""

    async def read_all() -> float:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        await consumer.start()
        try:
            places = [TopicPartition(topic, number) for number in range(partitions)]
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            found = 0
            begun = time.perf_counter()
            while found < records:
                for some in (await consumer.getmany(timeout_ms=500, max_records=5_000)).values():
                    found += len(some)
            return time.perf_counter() - begun
        finally:
            await consumer.stop()

    seconds = asyncio.run(read_all())
    return {"records": records, "records_per_s": records / seconds}


def bare_confluent(bootstrap: str, topic: str, records: int, partitions: int) -> dict[str, float]:
    """Read a topic by confluent-kafka's consume, and do nothing with it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bare", "enable.auto.commit": False})
    try:
        consumer.assign([Place(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        found = 0
        begun = time.perf_counter()
        while found < records:
            found += len(consumer.consume(5_000, 0.2))
        return {"records": records, "records_per_s": records / (time.perf_counter() - begun)}
    finally:
        consumer.close()


def plain_faust(bootstrap: str, topic: str, records: int, partitions: int, *options: str) -> dict[str, float]:
    """Read a topic with a plain Faust agent, in a process of its own; `--bare` leaves decoding and the table out."""
    command: Sequence[str] = [
        sys.executable,
        str(Path(__file__).with_name("_plain_faust.py")),
        bootstrap,
        topic,
        str(records),
        str(partitions),
        *options,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    told: list[Any] = [line for line in done.stdout.splitlines() if line.startswith("records_per_s ")]
    if not told:
        raise SystemExit(f"the plain agent ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return {"records": records, "records_per_s": float(told[0].split()[1])}
