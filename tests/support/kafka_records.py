"""Producing and reading, in the plainest way."""

import time
from collections.abc import Iterable

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

Record = tuple[bytes, bytes]
WAIT_S = 60


def make_topic(bootstrap: str, name: str, *, replication: int = 1, min_insync: int = 1) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        spec = {
            "num_partitions": 1,
            "replication_factor": replication,
            "configs": {"min.insync.replicas": str(min_insync)},
        }
        admin.create_topics({name: spec}, wait_for_metadata=True)
    finally:
        admin.close()


def leader_of(bootstrap: str, name: str) -> int:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        return int(admin.describe_topics([name])[0]["partitions"][0]["leader_id"])
    finally:
        admin.close()


def produce(bootstrap: str, name: str, records: Iterable[Record]) -> None:
    """Sends, and returns when each is acknowledged by all copies that are in sync."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5, delivery_timeout_ms=WAIT_S * 1000)
    try:
        futures = [producer.send(name, key=key, value=value) for key, value in records]
        for future in futures:
            future.get(WAIT_S)
    finally:
        producer.close(5)


def read(bootstrap: str, name: str, count: int) -> list[Record]:
    """The first records of the only partition, in order; fewer if they do not come in time."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, auto_offset_reset="earliest")
    partition = TopicPartition(name, 0)
    found: list[Record] = []
    try:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = time.monotonic() + WAIT_S
        while len(found) < count and time.monotonic() < end:
            for records in consumer.poll(timeout_ms=500).values():
                found += [(record.key, record.value) for record in records]
    finally:
        consumer.close()
    return found
