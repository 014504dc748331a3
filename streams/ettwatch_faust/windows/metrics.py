"""The figures of `ettwatch windows`, each with its meaning. They are served under /metrics."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

__all__ = ["WindowsMetrics"]

_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class WindowsMetrics:
    """All figures of one process, in a registry of their own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"ettwatch_windows_{name}", meaning, labels, registry=registry)

        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"ettwatch_windows_{name}", meaning, labels, registry=registry)

        self.records = counter("records", "Records read, by topic", "topic")
        self.bad = gauge("bad_records", "Records that could not be read since the partitions were taken over")
        self.refused = gauge(
            "refused", "What came too late to be counted: messages of jobs that left memory, parts of long ago", "stage"
        )
        self.published = counter("published", "Windows published, first and anew")
        self.sent_bytes = counter("sent_bytes", "Bytes sent, before compression", "topic")
        self.snapshots = counter("snapshots", "Snapshots of the state written")
        self.snapshot_bytes = gauge("snapshot_bytes", "Bytes of the last snapshot of a partition", "stage")
        self.turn_seconds = Histogram(
            "ettwatch_windows_turn_seconds",
            "How long it took to tell a minute, with what the brokers took",
            registry=registry,
            buckets=_SECONDS,
        )
        self.retries = counter("retries", "Times that something was tried again, by what", "what")
        self.gaps = counter("gaps", "Times that records were missing in a partition and it was read again")
        self.lost_records = counter("lost_records", "Records removed by retention before they were read")
        self.jobs = gauge("jobs", "Jobs in memory")
        self.dimensions = gauge("dimensions", "Dimensions in memory: the fleet, teams, models, clusters, owners")
        self.partitions = gauge("partitions", "Partitions that this process owns")
        self.lag = gauge("lag", "Records not read yet", "topic")
        self.told_timestamp = gauge(
            "told_timestamp_seconds", "End of the newest windows published by this process (Unix time)"
        )
