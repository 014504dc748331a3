"""What the recorder has brought to Kafka: the events of a topic, and what they must be like."""

import json
import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient

from ettwatch_schemas import Event, decode_event

PARTITIONS = 3


def make_events_topic(bootstrap: str, prefix: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        spec = {"num_partitions": PARTITIONS, "replication_factor": 1, "configs": {"max.message.bytes": "9437184"}}
        admin.create_topics({f"{prefix}.events": spec}, wait_for_metadata=True)
    finally:
        admin.close()


class Topic:
    """The topic of events of one prefix, read from its beginning. To be closed, also before its broker is cut off."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.records: list[tuple[str, list[dict[str, Any]]]] = []
        self._bootstrap = bootstrap
        self._topic = f"{prefix}.events"
        self._consumer: KafkaConsumer | None = None

    def _open(self) -> Any:
        if self._consumer is None:
            self.records = []
            self._consumer = KafkaConsumer(
                bootstrap_servers=self._bootstrap, enable_auto_commit=False, auto_offset_reset="earliest"
            )
            partitions = [TopicPartition(self._topic, number) for number in range(PARTITIONS)]
            self._consumer.assign(partitions)
            self._consumer.seek_to_beginning(*partitions)
        return self._consumer

    def read(self) -> list[dict[str, Any]]:
        """Every event so far, in the order of its partition, repetitions too. Each record is of one job, its key."""
        for records in self._open().poll(timeout_ms=300).values():
            for record in records:
                events = json.loads(record.value)
                assert isinstance(events, list)
                key = record.key.decode("utf-8")
                assert {event["job"] for event in events} == {key}
                self.records.append((key, events))
        return [event for _, events in self.records for event in events]

    def until(self, done: Callable[[list[dict[str, Any]]], object], seconds: float = 90.0) -> list[dict[str, Any]]:
        deadline = time.monotonic() + seconds
        while not done(found := self.read()):
            assert time.monotonic() < deadline, f"it did not come to that; {len(found)} events came"
        return found

    def until_ended(self, job: str) -> list[dict[str, Any]]:
        """Read until this job has ended."""
        return self.until(lambda found: any(e["kind"] == "job_ended" and e["job"] == job for e in found))

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def decoded(found: list[dict[str, Any]]) -> list[Event]:
    """Each event once, decoded, in order of time."""
    once = {event["id"]: event for event in found}
    events = [decode_event(json.dumps(event).encode()) for event in once.values()]
    return sorted(events, key=lambda event: event.ts)


def repetitions(found: list[dict[str, Any]]) -> int:
    return len(found) - len({event["id"] for event in found})


def in_order(found: list[dict[str, Any]]) -> bool:
    """Whether the events of each process came in the order in which it told them, repetitions aside."""
    seen: set[str] = set()
    last: dict[str, int] = {}
    for event in found:
        if event["id"] in seen:
            continue
        seen.add(event["id"])
        process, _, number = event["id"].partition("-")
        if int(number) < last.get(process, 0):
            return False
        last[process] = int(number)
    return True
