"""Round after round: told the time, it says when to come again. Errors of the database are a matter of health."""

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from ettwatch_clickhouse import Store, StoreError
from ettwatch_core.ownership import Owners
from ettwatch_monitor.alerts.alert import Alert
from ettwatch_monitor.alerts.deliver import Delivery, OutboxError
from ettwatch_monitor.alerts.watch.figures import AlertFigures
from ettwatch_monitor.alerts.watch.memory import StateError
from ettwatch_monitor.alerts.watch.rules import Rules
from ettwatch_monitor.alerts.watch.watcher import Report, Watcher

__all__ = ["Loop"]

log = logging.getLogger(__name__)

_SECOND_US = 1_000_000
_RETRY_US = 30 * _SECOND_US
_STUCK_US = 3_600 * _SECOND_US
_MISSED = 3
"""After so many times the usual pause without a round it is not ready."""


class Loop:
    """Rounds and deliveries.

    Args:
        watcher: Does a round.
        connect: Opens the database; may raise StoreError.
        delivery: Brings alerts to the channels; None to keep them.
        firing: Returns the alerts that the delivery holds for firing.
        rules: The rules to begin with.
        refresh: Returns rules and owners where they changed; None where nothing did.
        figures: For Prometheus.
    """

    def __init__(
        self,
        watcher: Watcher,
        connect: Callable[[], Store],
        delivery: Delivery | None,
        firing: Callable[[], list[Alert]],
        rules: Rules,
        refresh: Callable[[], tuple[Rules, Owners] | None] = lambda: None,
        figures: AlertFigures | None = None,
    ) -> None:
        self._watcher = watcher
        self._connect = connect
        self._delivery = delivery
        self._firing = firing
        self._every = int(rules.every_s * _SECOND_US)
        self._refresh = refresh
        self.figures = figures or AlertFigures()
        self._store: Store | None = None
        self._due = 0
        self._stepped: int | None = None
        self._done: int | None = None
        self.error: str | None = None
        """Why the last round failed; None where it did not."""
        self.report: Report | None = None
        """Of the last round that was done."""

    def step(self, now: int) -> int:
        """Do what is due; return when to come again, in microseconds."""
        if now >= self._due:
            self._due = now + (self._every if self._round(now) else min(_RETRY_US, self._every))
        self._stepped = now
        return min(self._due, self._deliver(now))

    def close(self) -> None:
        """Let go of the database."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def healthy(self, now: int) -> str | None:
        """Return why the process should be started anew; None where it works."""
        if self._stepped is not None and now - self._stepped > _STUCK_US:
            return f"it has not looked after its work for {(now - self._stepped) // _SECOND_US} s"
        return None

    def ready(self, now: int) -> str | None:
        """Return why it does not watch right now; None where it does."""
        if self.error is not None:
            return self.error
        if self._done is None:
            return "no round was done yet"
        if now - self._done > _MISSED * self._every + 60 * _SECOND_US:
            return f"the last round was done {(now - self._done) // _SECOND_US} s ago"
        return None

    def _round(self, now: int) -> bool:
        changed = self._refresh()
        if changed is not None:
            self._watcher.configure(*changed)
            self._every = int(changed[0].every_s * _SECOND_US)
        begin = time.monotonic()
        try:
            if self._store is None:
                self._store = self._connect()
            report = self._watcher.round(self._store, now)
            for alert in report.alerts:
                self._put(alert, now)
            self._settle(report, now)
        except (StoreError, StateError, OutboxError) as error:
            self._failed(error)
            return False
        if self.error is not None:
            log.info("rounds are done again", extra={"event": "recovered"})
        self.error, self._done, self.report = None, now, report
        self._measure(report, now, time.monotonic() - begin)
        for one in report.opened:
            log.warning("%s", one.note or str(one.key), extra={"event": "alert", "key": str(one.key)})
        return True

    def _failed(self, error: Exception) -> None:
        """Note that a round was not done. No alert begins or ends by it: nothing is known."""
        self.figures.rounds.labels("failed").inc()
        self.figures.up.set(0)
        if isinstance(error, StoreError):
            self.figures.query_errors.inc()
            store, self._store = self._store, None
            if store is not None:
                with contextlib.suppress(StoreError):
                    store.close()
        if str(error) != self.error:
            log.warning("no round was done: %s", error, extra={"event": "round_failed"})
        self.error = str(error)

    def _put(self, alert: Alert, now: int) -> None:
        if self._delivery is not None:
            self._delivery.put(alert, now)

    def _settle(self, report: Report, now: int) -> None:
        """End what the channels still hold for firing, and nobody remembers: its file of episodes was lost."""
        if self._delivery is None:
            return
        known = {alert.key for alert in report.alerts if alert.firing}
        for alert in self._firing():
            if alert.key not in known:
                ended = replace(alert, status="resolved", ends_at=max(now, alert.starts_at), updated_at=now)
                self._delivery.put(ended, now)

    def _deliver(self, now: int) -> int:
        if self._delivery is None:
            return self._due
        try:
            due = self._delivery.deliver_all(now)
            for health in self._delivery.health():
                self.figures.undelivered.labels(health.channel).set(health.waiting)
                self.figures.silenced.labels(health.channel).set(health.silenced)
                self.figures.refused.labels(health.channel).set(health.refused)
                self.figures.channel_up.labels(health.channel).set(health.failing_since is None)
        except OutboxError as error:
            log.error("%s", error, extra={"event": "outbox_failed"})
            return now + _RETRY_US
        return self._due if due is None else max(due, now + _SECOND_US // 10)

    def _measure(self, report: Report, now: int, seconds: float) -> None:
        figures = self.figures
        figures.rounds.labels("done").inc()
        figures.round_seconds.observe(seconds)
        figures.last_round.set(now / _SECOND_US)
        figures.up.set(1)
        figures.tests.set(len(report.looks))
        figures.waiting.set(len(report.waiting))
        figures.attempts.set(report.attempts)
        figures.excluded.set(sum(one.failures for one in report.excluded))
        figures.firing.clear()
        for alert in report.alerts:
            if alert.firing:
                figures.firing.labels(alert.labels.get("metric", ""), alert.severity).inc()
        for one in report.opened:
            figures.opened.labels(one.key.metric).inc()
        for one in report.closed:
            figures.closed.labels(one.key.metric, one.ending or "").inc()
