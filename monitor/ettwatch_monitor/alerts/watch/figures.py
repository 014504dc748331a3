"""Every figure of the alerts for Prometheus, in one place: name, kind, labels, and what it means."""

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

__all__ = ["AlertFigures"]

_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


@dataclass(frozen=True, slots=True)
class AlertFigures:
    """The figures of one process that watches.

    Attributes:
        registry: Where they are collected.
        rounds: Rounds, by how they ended: `done`, or `failed`.
        round_seconds: How long one took.
        last_round: When the last one was done, in seconds since the epoch.
        query_errors: Queries on ClickHouse that failed. They raise no alert.
        up: 1 if the last round was done, 0 if it failed.
        tests: Tests of the last round.
        waiting: Streams with too few samples to be tested.
        attempts: Attempts that the last round read.
        firing: Alerts that fire, by metric and severity.
        opened: Alerts that began, by metric.
        closed: Alerts that ended, by metric and reason.
        excluded: Failures that planned maintenance left out, of all windows that are read.
        undelivered: Messages that wait for a channel.
        silenced: Those of them that a silence keeps back.
        refused: Messages of the last days that the receiver of a channel does not take.
        channel_up: 1 if a channel works, 0 if it fails.
    """

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    rounds: Counter = field(init=False)
    round_seconds: Histogram = field(init=False)
    last_round: Gauge = field(init=False)
    query_errors: Counter = field(init=False)
    up: Gauge = field(init=False)
    tests: Gauge = field(init=False)
    waiting: Gauge = field(init=False)
    attempts: Gauge = field(init=False)
    firing: Gauge = field(init=False)
    opened: Counter = field(init=False)
    closed: Counter = field(init=False)
    excluded: Gauge = field(init=False)
    undelivered: Gauge = field(init=False)
    silenced: Gauge = field(init=False)
    refused: Gauge = field(init=False)
    channel_up: Gauge = field(init=False)

    def __post_init__(self) -> None:
        ProcessCollector(registry=self.registry)

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"ettwatch_alerts_{name}", meaning, labels, registry=self.registry)

        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"ettwatch_alerts_{name}", meaning, labels, registry=self.registry)

        made = {
            "rounds": counter("rounds", "rounds of detection", "result"),
            "round_seconds": Histogram(
                "ettwatch_alerts_round_seconds", "how long a round took", buckets=_SECONDS, registry=self.registry
            ),
            "last_round": gauge("last_round_timestamp_seconds", "when the last round was done"),
            "query_errors": counter("query_errors", "queries on ClickHouse that failed"),
            "up": gauge("up", "1 if the last round was done, 0 if it failed"),
            "tests": gauge("tests", "tests of the last round"),
            "waiting": gauge("waiting", "streams with too few samples to be tested"),
            "attempts": gauge("attempts", "attempts that the last round read"),
            "firing": gauge("firing", "alerts that fire", "metric", "severity"),
            "opened": counter("opened", "alerts that began", "metric"),
            "closed": counter("closed", "alerts that ended", "metric", "reason"),
            "excluded": gauge("excluded_failures", "failures that planned maintenance left out"),
            "undelivered": gauge("undelivered", "messages that wait for a channel", "channel"),
            "silenced": gauge("silenced", "messages that wait because of a silence", "channel"),
            "refused": gauge("refused", "messages that the receiver of a channel does not take", "channel"),
            "channel_up": gauge("channel_up", "1 if a channel works, 0 if it fails", "channel"),
        }
        for name, metric in made.items():
            object.__setattr__(self, name, metric)
