"""Runs of the detector over simulated weeks: with nothing injected, and with one team made worse."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from _detection_fleet import BEGIN, END, HOUR_US, ZONE, Wound, facts
from _detection_rivals import Days, alerts, figures, three_sigma, threshold, usual
from _detection_streams import streams
from ettwatch_monitor.alerts.detect import (
    FLEET,
    Book,
    Detector,
    Exposure,
    Incident,
    Look,
    Rate,
    Settings,
    Stream,
    StreamKey,
    Times,
    in_order,
)

DAY_US: Final = 24 * HOUR_US
FIRST: Final = BEGIN + 14 * DAY_US
EVERY: Final = 6 * HOUR_US
ROUNDS: Final = range(FIRST, END, EVERY)
THRESHOLDS: Final = (1.2, 1.5)


class Film:
    """Streams of a whole run, shown up to any instant."""

    def __init__(self, whole: Mapping[StreamKey, Stream]) -> None:
        self._whole = whole
        self._ts = {key: [one.ts for one in _members(stream)] for key, stream in whole.items()}

    def upto(self, now: int) -> dict[StreamKey, Stream]:
        """Return what was known at an instant."""
        shown: dict[StreamKey, Stream] = {}
        for key, stream in self._whole.items():
            number = bisect_right(self._ts[key], now)
            if isinstance(stream, Times):
                shown[key] = Times(stream.samples[:number], True)
            else:
                hours = stream.exposure.hours[: (now - BEGIN) // HOUR_US]
                shown[key] = Rate(stream.failures[:number], Exposure(BEGIN, hours, now), True)
        return shown

    def number(self, key: StreamKey, since: int, until: int) -> int:
        """Return how many samples or failures a stream has between two instants."""
        return bisect_left(self._ts[key], until) - bisect_left(self._ts[key], since)


def _members(stream: Stream) -> "list":  # type: ignore[type-arg]
    return list(stream.samples if isinstance(stream, Times) else stream.failures)


@dataclass(slots=True)
class Quiet:
    """A run with nothing injected.

    Attributes:
        seed: Of the fleet.
        told: Alerts, all of them false.
        looks: What each test said in each round, with its p value.
        healthy: The streams of start times.
        rivals: By way and metric: false alerts of all teams.
        spreads: Standard deviation of the logarithm of TTS, of each team's kinds of jobs.
    """

    seed: int
    told: list[Incident] = field(default_factory=list)
    looks: dict[int, Mapping[StreamKey, Look]] = field(default_factory=dict)
    healthy: dict[StreamKey, Stream] = field(default_factory=dict)
    rivals: dict[tuple[str, str], int] = field(default_factory=dict)
    spreads: list[float] = field(default_factory=list)


def quiet(seed: int) -> Quiet:
    """Run a fleet in which nothing happens."""
    whole = streams(facts(seed), BEGIN, END)
    film, detector, book, run = Film(whole), Detector(Settings(zone=ZONE)), Book(), Quiet(seed)
    for now in ROUNDS:
        told = detector.look(now, film.upto(now), book)
        book = told.book
        run.told += told.opened
        run.looks[now] = told.looks
    run.healthy = {key: stream for key, stream in whole.items() if key.metric == "tts"}
    for key, stream in whole.items():
        if key.metric in ("tts", "nof") and key.scope != FLEET:
            for way, begun in rival_alerts(stream).items():
                run.rivals[way, key.metric] = run.rivals.get((way, key.metric), 0) + len(begun)
        if key.metric == "tts" and key.scope != FLEET and isinstance(stream, Times):
            run.spreads.append(_spread(stream))
    return run


def _spread(stream: Times) -> float:
    kinds: dict[str, list[float]] = {}
    for sample in stream.samples:
        kinds.setdefault(sample.model, []).append(float(np.log(sample.value)))
    left = np.concatenate([np.array(some) - np.mean(some) for some in kinds.values()])
    return float(np.std(left))


def rival_alerts(stream: Stream) -> dict[str, list[int]]:
    """Return when alerts began by the other ways."""
    days: list[Days] = figures(stream, ROUNDS, BEGIN)
    level = usual(stream, BEGIN)
    later = [now >= BEGIN + 28 * DAY_US for now in ROUNDS]  # the threshold is set after four weeks
    made = {"3 sigma": alerts(ROUNDS, [three_sigma(day) for day in days])}
    for factor in THRESHOLDS:
        above = [threshold(day, level, factor) and late for day, late in zip(days, later, strict=True)]
        made[f"threshold x{factor}"] = alerts(ROUNDS, above)
    return made


@dataclass(frozen=True, slots=True)
class Trial:
    """One team that got worse.

    Attributes:
        delay: Samples (starts, or failures) from the onset until it was found; None if it never was.
        hours: The same in hours.
        off: Hours between the onset as it was told and as it was.
        truly: Of each other way: samples until it told, or None.
    """

    delay: int | None
    hours: float | None
    off: float | None
    truly: Mapping[str, int | None]


def slowed(stream: Stream, since: int, factor: float) -> Times:
    """Return a stream of start times in which those that began after an instant took longer."""
    assert isinstance(stream, Times)
    hurt = []
    for sample in stream.samples:
        took = int(1e6 * sample.value)
        if sample.ts - took >= since:
            later = sample.ts + int((factor - 1) * took)
            hurt.append(replace(sample, ts=later, value=sample.value * factor))
        else:
            hurt.append(sample)
    return Times(in_order(hurt, END), True)


def trial(run: Quiet, number: int, metric: str, factor: float) -> Trial:
    """Make one team worse from a random instant on, and see when it is found.

    All other tests are those of the quiet run, also those of the same team: they could only help.
    """
    seed, looks, healthy = run.seed, run.looks, run.healthy
    rng = np.random.default_rng([seed, 4, number])
    since = int(rng.integers(BEGIN + 42 * DAY_US, BEGIN + 70 * DAY_US))
    team = f"team{number}"
    key = StreamKey(metric, (("team", team),))
    if metric == "tts":
        stream: Stream = slowed(healthy[key], since, factor)
    else:
        stream = streams(facts(seed, Wound(team, since, factor), team), BEGIN, END)[key]
    whole = {key: stream}
    film, detector, book = Film(whole), Detector(Settings(zone=ZONE)), Book()
    delay, hours, off = None, None, None
    for now in _after(since):
        beside = {name: look for name, look in looks[FIRST + (now - FIRST) // EVERY * EVERY].items() if name != key}
        told = detector.look(now, film.upto(now), book, beside)
        book = told.book
        hit = [one for one in (*told.opened, *told.changed) if key == one.key or key in one.also]
        if hit:
            delay, hours = film.number(key, since, now), (now - since) / HOUR_US
            off = (hit[0].onset - since) / HOUR_US
            break
    truly = {}
    for way, begun in rival_alerts(stream).items():
        first = next((now for now in begun if now >= since), None)
        truly[way] = None if first is None else film.number(key, since, first)
    return Trial(delay, hours, off, truly)


def _after(since: int) -> Iterator[int]:
    """Yield the times of looks after an onset: every hour, as only one stream is looked at."""
    return iter(range(since // HOUR_US * HOUR_US + HOUR_US, END, HOUR_US))
