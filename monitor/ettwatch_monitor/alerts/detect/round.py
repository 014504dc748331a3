"""One round: all streams are looked at, and it is decided what to tell."""

from collections.abc import Mapping
from dataclasses import dataclass

from ettwatch_monitor.alerts.detect.calendar import DAY_US, Calendar
from ettwatch_monitor.alerts.detect.fdr import discoveries
from ettwatch_monitor.alerts.detect.gather import gather
from ettwatch_monitor.alerts.detect.incident import Book, Incident
from ettwatch_monitor.alerts.detect.look import Effect, Look
from ettwatch_monitor.alerts.detect.metrics import METRICS, Metric
from ettwatch_monitor.alerts.detect.rate import RateTrack
from ettwatch_monitor.alerts.detect.sample import FLEET, Rate, Stream, StreamKey, Times, in_order
from ettwatch_monitor.alerts.detect.settings import Settings
from ettwatch_monitor.alerts.detect.times import TimesTrack

__all__ = ["Detector", "Round"]

Track = TimesTrack | RateTrack


@dataclass(frozen=True, slots=True)
class Round:
    """What a round found.

    Attributes:
        book: What is remembered now.
        opened: New episodes.
        changed: Open ones that other streams joined.
        closed: Those that ended.
        looks: What each tested stream said.
        waiting: Streams that have not enough samples yet.
    """

    book: Book
    opened: tuple[Incident, ...]
    changed: tuple[Incident, ...]
    closed: tuple[Incident, ...]
    looks: Mapping[StreamKey, Look]
    waiting: tuple[StreamKey, ...]


class Detector:
    """Looks at streams. It is told the time, and what is remembered; its own memory only saves work.

    Raises ValueError for an unknown time zone.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._calendar = Calendar.of(self.settings.zone)
        self._tracks: dict[StreamKey, Track] = {}

    def track(self, key: StreamKey) -> Track | None:
        """Return the track of a stream that the last round saw."""
        return self._tracks.get(key)

    def look(
        self,
        now: int,
        streams: Mapping[StreamKey, Stream],
        book: Book,
        beside: Mapping[StreamKey, Look] | None = None,
    ) -> Round:
        """Look at all streams.

        Args:
            now: The time, in microseconds; what is later is not seen.
            streams: All that is known: samples in any order, some perhaps twice.
            book: What is remembered.
            beside: What other detectors found in this round: their tests count in the rate of false discoveries.
        """
        self._update(now, streams, book)
        closed = list(self._closed(now, book))
        for one in closed:
            book = book.written(one)
            if one.key in streams:  # what it leaves behind is no baseline
                self._feed(one.key, now, streams[one.key], book)
        looks: dict[StreamKey, Look] = {}
        waiting = []
        over = {one.key for one in closed}
        for key in streams:
            if book.open(key) is not None or key in over or key.metric in self.settings.off:
                continue
            look = self._tracks[key].look(now)
            if look is None:
                waiting.append(key)
            else:
                looks[key] = look
        found = self._found(now, looks, beside or {})
        book, opened, changed = gather(now, found, looks, book, self.settings)
        book = book.since(now - self.settings.history_days * DAY_US)
        return Round(book, tuple(opened), tuple(changed), tuple(closed), looks, tuple(waiting))

    def _update(self, now: int, streams: Mapping[StreamKey, Stream], book: Book) -> None:
        for gone in self._tracks.keys() - streams.keys():
            del self._tracks[gone]
        for key, stream in streams.items():
            self._feed(key, now, stream, book)

    def _feed(self, key: StreamKey, now: int, stream: Stream, book: Book) -> None:
        metric = METRICS[key.metric]
        track = self._tracks.get(key)
        holes, cut = book.holes(key), book.cut(key)
        if isinstance(stream, Times):
            if not isinstance(track, TimesTrack):
                track = self._tracks[key] = TimesTrack(metric, self._calendar, self.settings)
            track.update(list(stream.samples) if stream.ordered else in_order(stream.samples, now), holes, cut)
        else:
            if not isinstance(track, RateTrack):
                track = self._tracks[key] = RateTrack(metric, self._calendar, self.settings)
            if not stream.ordered:
                stream = Rate(in_order(stream.failures, now), stream.exposure)
            track.update(stream, holes, cut)

    def _closed(self, now: int, book: Book) -> list[Incident]:
        """Return the open episodes of streams that are over."""
        settings, ended = self.settings, []
        for one in book.all_open():
            if one.sort in ("threshold", "outage"):
                continue  # they end where they are made
            track = self._tracks.get(one.key)
            if one.key.metric in settings.off:
                ended.append(one.end(now, "off"))
                continue
            back = track.recovered(one.onset, one.found, one.shift, now) if track is not None else None
            last = track.last if track is not None else None
            if back is not None:
                ended.append(one.end(now, "recovered", back))
            elif now - one.found >= settings.accept_days * DAY_US:
                ended.append(one.end(now, "accepted"))
            elif now - max(last or 0, one.found) >= settings.quiet_days * DAY_US:
                # What it was made of is over as well: it must not be found anew.
                ended.append(one.end(now, "quiet", now))
        return ended

    def _found(
        self, now: int, looks: Mapping[StreamKey, Look], beside: Mapping[StreamKey, Look]
    ) -> list[tuple[StreamKey, Look, Effect]]:
        """Return the streams that got worse: those first that say most to people, and of those the surest."""
        tests = {**beside, **looks}
        weights = [self._weight(key, look) for key, look in tests.items()]
        p_values = [look.p for look in tests.values()]
        told = discoveries(p_values, weights, self.settings.fdr, self.settings.dependence)
        found = []
        for key, weight, discovered in zip(tests, weights, told, strict=True):
            if not discovered or key not in looks or looks[key].p > self.settings.alone * weight:
                continue
            track, onset = self._tracks[key], looks[key].onset
            if now - onset < METRICS[key.metric].lasts_days * DAY_US:
                continue
            effect = track.effect(onset, now)
            if effect is None or not self._matters(METRICS[key.metric], effect):
                continue
            # What is over by now would be resolved in the next round: it is told to nobody.
            if track.recovered(onset, onset, effect.shift, now) is None:
                found.append((key, looks[key], effect))
        order = {name: number for number, name in enumerate(METRICS)}
        return sorted(found, key=lambda one: (order[one[0].metric], one[0].scope == FLEET, one[1].p, one[0]))

    def _weight(self, key: StreamKey, look: Look) -> float:
        """Return the part of the error that a test may spend: the less, the more often a day it can be wrong."""
        return self.settings.weights[key.metric] * min(1.0, METRICS[key.metric].pace / max(look.pace, 1e-9))

    def _matters(self, metric: Metric, effect: Effect) -> bool:
        settings = self.settings
        least = settings.least_failures if metric.kind == "rate" else settings.least_after
        if effect.after < least or effect.jobs_after < min(settings.least_jobs, effect.jobs_before):
            return False
        ratio = effect.ratio if metric.worse > 0 else 1 / max(effect.ratio, 1e-9)
        return ratio >= settings.least_ratio[metric.name] and (
            metric.worse * effect.points >= settings.least_points[metric.name]
        )
