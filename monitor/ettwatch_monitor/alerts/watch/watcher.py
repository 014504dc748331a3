"""One round of the whole: read, look, explain, remember, and say what to tell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.alerts.alert import Alert
from ettwatch_monitor.alerts.detect import METRICS, Book, Detector, Failed, Incident, Look, Sample, StreamKey
from ettwatch_monitor.alerts.watch.explain import Part, explain_rate, explain_times
from ettwatch_monitor.alerts.watch.memory import Memory
from ettwatch_monitor.alerts.watch.outage import check_outage
from ettwatch_monitor.alerts.watch.read import Detail, read_attempts, read_details
from ettwatch_monitor.alerts.watch.rules import Rules
from ettwatch_monitor.alerts.watch.streams import Fleet, make_streams
from ettwatch_monitor.alerts.watch.threshold import check_thresholds
from ettwatch_monitor.alerts.watch.window import Excluded
from ettwatch_monitor.alerts.watch.words import alert_of

__all__ = ["Report", "Watcher"]

_DAY_US: Final = 86_400_000_000
_MINUTE_US: Final = 60_000_000
_MOST_LOOKED_AT: Final = 400
"""Jobs of each side of an onset that are looked at closely, for hosts and caches."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a round says.

    Attributes:
        alerts: Every open episode and every one that ended in this round, as alerts.
        opened: The new episodes.
        closed: Those that ended.
        looks: What each test said.
        waiting: Streams that have too few samples.
        attempts: How many attempts were read.
        excluded: What planned maintenance left out.
    """

    alerts: tuple[Alert, ...]
    opened: tuple[Incident, ...]
    closed: tuple[Incident, ...]
    looks: dict[StreamKey, Look]
    waiting: tuple[StreamKey, ...]
    attempts: int
    excluded: tuple[Excluded, ...]


class Watcher:
    """Watches one database.

    Args:
        rules: What is watched.
        owners: Whose the components are.
        memory: What outlives the process.
    """

    def __init__(self, rules: Rules, owners: Owners, memory: Memory) -> None:
        self._memory = memory
        self._book, self._parts = memory.load()
        self.configure(rules, owners)

    def configure(self, rules: Rules, owners: Owners) -> None:
        """Go on with other rules and owners."""
        self._rules, self._owners = rules, owners
        self._detector = Detector(rules.detect)

    def round(self, store: Store, now: int) -> Report:
        """Read, look, and remember.

        Nothing is changed where the database cannot be read: an error is no sample, and raises and ends no alert.

        Raises:
            StoreError: The database cannot be read.
            StateError: What was found cannot be kept. Nothing was told, and it will be found again.
        """
        begin = now - self._rules.detect.history_days * _DAY_US
        attempts = read_attempts(store, begin)
        minutes = self._rules.detect.outage_minutes
        fleet = make_streams(
            attempts, self._owners, self._rules.windows, begin, now, self._rules.scopes, minutes * _MINUTE_US
        )
        accepted = self._accepted(now)
        book = self._book
        for one in accepted:
            book = book.written(one)
        found = self._detector.look(now, fleet.streams, book)
        book, thresholds_opened, thresholds_closed = check_thresholds(
            self._rules.thresholds, now, fleet.streams, found.book
        )
        book, outage_opened, outage_closed = check_outage(fleet, now, book, self._rules.detect)
        opened = (*found.opened, *thresholds_opened, *outage_opened)
        closed = (*accepted, *found.closed, *thresholds_closed, *outage_closed)
        parts = dict(self._parts)
        for one in (*opened, *found.changed):
            parts[str(one.key), one.found] = self._explain(one, fleet, store, now)
        kept = {(str(one.key), one.found) for one in book.incidents}
        parts = {name: some for name, some in parts.items() if name in kept}
        self._memory.save(book, parts, fleet.excluded, now)
        self._book, self._parts = book, parts
        # What ended lately is told once more: the process may have died before the channels heard of it.
        lately = [one for one in book.incidents if one.ended is not None and one.ended > now - _DAY_US]
        told = [*book.all_open(), *(one for one in lately if book.open(one.key) is None)]
        told.sort(key=lambda one: (one.found, one.key))
        return Report(
            tuple(self._alert(one, now) for one in told),
            opened,
            closed,
            dict(found.looks),
            found.waiting,
            len(attempts),
            fleet.excluded,
        )

    @property
    def book(self) -> Book:
        """What is remembered."""
        return self._book

    def _accepted(self, now: int) -> list[Incident]:
        names = self._memory.accepted()
        return [one.end(now, "accepted") for one in self._book.all_open() if str(one.key) in names]

    def _alert(self, one: Incident, now: int) -> Alert:
        labels = one.key.labels
        team = labels.get("owner") or labels.get("team")
        contact = self._owners.contact(team) if team else None
        alert = alert_of(
            one, now, self._parts.get((str(one.key), one.found), ()), contact, self._rules.detect.baseline_days
        )
        rule = next((rule for rule in self._rules.thresholds if rule.name == labels.get("rule")), None)
        return alert if rule is None else replace(alert, severity=rule.severity)

    def _explain(self, one: Incident, fleet: Fleet, store: Store, now: int) -> tuple[Part, ...]:
        if one.effect is None:
            return ()
        key = one.key if self._detector.track(one.key) is not None else next(iter(one.also), one.key)
        track = self._detector.track(key)
        metric = METRICS[key.metric]
        if track is None:
            return ()
        before, after = track.sides(one.onset, now)
        details = read_details(store, _jobs(before, after))
        if metric.kind == "rate":
            held = track.held(one.onset, now)  # type: ignore[union-attr]
            low = [replace(f, host=_detail(f, details).host) for f in before if isinstance(f, Failed)]
            high = [replace(f, host=_detail(f, details).host) for f in after if isinstance(f, Failed)]
            return tuple(explain_rate(low, high, *held))
        starts = metric.name in ("tts", "ttr")
        sides = [
            [_closer(sample, details, starts=starts) for sample in side if isinstance(sample, Sample)]
            for side in (before, after)
        ]
        return tuple(explain_times(metric, *sides))


def _jobs(before: Sequence[Sample | Failed], after: Sequence[Sample | Failed]) -> list[str]:
    """Return the jobs nearest to the onset and the newest ones, evenly from both sides."""
    names = [one.job for one in before[-_MOST_LOOKED_AT:]] + [one.job for one in after[-_MOST_LOOKED_AT:]]
    return list(dict.fromkeys(names))


def _detail(one: Sample | Failed, details: dict[tuple[str, int], Detail]) -> Detail:
    return details.get((one.job, int(one.id.rpartition("/")[2])), Detail())


def _closer(sample: Sample, details: dict[tuple[str, int], Detail], *, starts: bool) -> Sample:
    detail = _detail(sample, details)
    stages = detail.startup if starts and detail.startup is not None else sample.stages
    return replace(sample, host=detail.host, cache_hit=detail.cache_hit, stages=stages)
