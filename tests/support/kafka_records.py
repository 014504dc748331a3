"""Producing and reading, in the plainest way."""

import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from support.pipeline_programs import until

Record = tuple[bytes, bytes]
WAIT_S = 120


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
    return int(_partition(bootstrap, name).leader)


def wait_for_leader(bootstrap: str, name: str, *, other_than: int) -> None:
    """Waits until another broker leads the only partition: for a dead one, the others need a while to notice."""
    until(f"another leader of {name}", lambda: leader_of(bootstrap, name) not in (-1, other_than), WAIT_S)


def wait_for_copies(bootstrap: str, name: str, count: int) -> None:
    """Waits until so many copies of the only partition are in sync: then any one of them can take it over."""
    until(f"{count} copies of {name} in sync", lambda: len(_partition(bootstrap, name).isrs) == count, WAIT_S)


def _partition(bootstrap: str, name: str) -> Any:
    # This client leaves no sockets behind where a broker is dead.
    topics = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(name, timeout=WAIT_S).topics
    return topics[name].partitions[0]


def produce(bootstrap: str, name: str, records: Iterable[Record]) -> None:
    """Sends, and returns when each is acknowledged by all copies that are in sync."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        linger_ms=5,
        delivery_timeout_ms=WAIT_S * 1000,
        reconnect_backoff_max_ms=1_000,  # 30 s by default: too seldom to learn soon who leads after a broker died
    )
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
