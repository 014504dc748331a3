"""The figures of a worker, each with its meaning. They are served under /metrics."""

from collections import Counter as Counter_
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

__all__ = ["Metrics"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_BYTES = tuple(float(1 << n) for n in range(10, 27, 2))


class Metrics:
    """All figures of one worker, in a registry of their own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"ettwatch_worker_{name}", meaning, labels, registry=registry)

        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"ettwatch_worker_{name}", meaning, labels, registry=registry)

        def histogram(name: str, meaning: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"ettwatch_worker_{name}", meaning, registry=registry, buckets=buckets)

        self.messages = counter("messages", "Records read from the events topic")
        self.events = counter("events", "Events that count")
        self.duplicates = counter("duplicates", "Events that were told before, and whole records that came again")
        self.dead_letters = counter("dead_letters", "Events and records refused, by reason", "code")
        self.published = counter("published", "Publications of jobs")
        self.bytes_in = counter("in_bytes", "Bytes of the records read (values)")
        self.bytes_out = counter("out_bytes", "Bytes of the records sent, before compression", "topic")
        self.changelog_bytes = counter("changelog_bytes", "Bytes sent to the changelog, before compression")
        self.flush_seconds = histogram("flush_seconds", "How long a flush took, with what the brokers took", _SECONDS)
        self.flush_bytes = histogram("flush_bytes", "Bytes sent in a flush", _BYTES)
        self.busy_seconds = counter("busy_seconds", "Seconds of work, by what was done", "what")
        self.retries = counter("retries", "Attempts that failed and were made again, by what was tried", "what")
        self.gaps = counter("gaps", "Times that records were missing in a partition and it was read again")
        self.lost_records = counter("lost_records", "Records removed by retention before they were read")
        self.live_jobs = gauge("live_jobs", "Jobs known, by status", "status")
        self.states = gauge("states_in_memory", "Jobs whose state is unpacked in memory")
        self.weight = gauge("states_weight", "Unsettled events and drawn segments in memory")
        self.partitions = gauge("partitions", "Partitions that this worker owns")
        self.lag = gauge("lag", "Records not read yet", "partition")
        self.watermark_delay = gauge(
            "watermark_delay_seconds", "How long ago the newest record read had arrived at the broker", "partition"
        )
        self.recovery_seconds = gauge("recovery_seconds", "How long the last recovery of the state took")
        self.rebalances = counter("rebalances", "Times that partitions were handed out anew")

    def sent(self, sizes: Iterable[tuple[str, int]], changelog: str) -> None:
        """Count what a flush sent.

        Args:
            sizes: Topic and bytes of each record.
            changelog: The topic of the state.
        """
        sums: Counter_[str] = Counter_()
        for topic, size in sizes:
            sums[topic] += size
        self.flush_bytes.observe(sums.total())
        self.changelog_bytes.inc(sums.pop(changelog, 0))
        for topic, size in sums.items():
            self.bytes_out.labels(topic).inc(size)
