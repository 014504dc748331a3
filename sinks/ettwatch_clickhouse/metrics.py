"""Every figure of the sink for Prometheus, in one place: name, kind, labels, and what it means."""

from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

__all__ = ["SinkMetrics"]

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_ROWS: Final = (1, 10, 100, 1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000)


@dataclass(frozen=True, slots=True)
class SinkMetrics:
    """The figures of one sink process.

    Attributes:
        registry: Where they are collected.
        records: Records read.
        refused: Records, or lines of one, that could not be read, and went to the dead letters.
        rows: Rows that are safe in ClickHouse.
        inserts: Inserts that succeeded.
        insert_seconds: How long one took, retries not included.
        insert_rows: How many rows one had.
        retries: Calls to ClickHouse that failed and are made again.
        commit_failures: Commits of offsets that the brokers refused: the records come again, which does no harm.
        held_rows: Rows that wait for the next insert.
        held_bytes: Bytes of the records that these are made of.
        paused: 1 while nothing is read, because too much waits.
        lag: Records that are there and not yet safe in ClickHouse.
        delay_seconds: From the time that a record bears to its rows being safe, of the newest record of each batch.
        partitions: Partitions that this process reads.
    """

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    records: Counter = field(init=False)
    refused: Counter = field(init=False)
    rows: Counter = field(init=False)
    inserts: Counter = field(init=False)
    insert_seconds: Histogram = field(init=False)
    insert_rows: Histogram = field(init=False)
    retries: Counter = field(init=False)
    commit_failures: Counter = field(init=False)
    held_rows: Gauge = field(init=False)
    held_bytes: Gauge = field(init=False)
    paused: Gauge = field(init=False)
    lag: Gauge = field(init=False)
    delay_seconds: Histogram = field(init=False)
    partitions: Gauge = field(init=False)

    def __post_init__(self) -> None:
        ProcessCollector(registry=self.registry)

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"ettwatch_sink_{name}", meaning, labels, registry=self.registry)

        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"ettwatch_sink_{name}", meaning, labels, registry=self.registry)

        def histogram(name: str, meaning: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"ettwatch_sink_{name}", meaning, labels, buckets=buckets, registry=self.registry)

        made = {
            "records": counter("records", "records read", "topic"),
            "refused": counter("refused", "records, or lines of one, that went to the dead letters", "topic"),
            "rows": counter("rows", "rows that are safe in ClickHouse", "table"),
            "inserts": counter("inserts", "inserts that succeeded", "table"),
            "insert_seconds": histogram("insert_seconds", "how long one insert took", _SECONDS, "table"),
            "insert_rows": histogram("insert_rows", "rows of one insert", _ROWS, "table"),
            "retries": counter("retries", "calls to ClickHouse that failed and are made again"),
            "commit_failures": counter("commit_failures", "commits of offsets that the brokers refused"),
            "held_rows": gauge("held_rows", "rows that wait for the next insert"),
            "held_bytes": gauge("held_bytes", "bytes of the records that wait for the next insert"),
            "paused": gauge("paused", "1 while nothing is read, because too much waits"),
            "lag": gauge("lag", "records that are there and not yet safe in ClickHouse", "topic", "partition"),
            "delay_seconds": histogram("delay_seconds", "from a record's time to its rows being safe", _SECONDS),
            "partitions": gauge("partitions", "partitions that this process reads"),
        }
        for name, metric in made.items():
            object.__setattr__(self, name, metric)
