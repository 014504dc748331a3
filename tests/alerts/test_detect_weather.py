"""Bad days that all jobs share are no change; and what lasts is one, also where days are bad now and then."""

from dataclasses import replace

import numpy as np

from ettwatch_monitor.alerts.detect import Detector, Sample, StreamKey, Times
from ettwatch_monitor.alerts.detect.times import TimesTrack
from support.regress import DAY, HOUR, T0, TTS, rounds, starts

ETT = StreamKey("ett", (("team", "ads"),))
EVERY_12H = range(T0 + 28 * DAY, T0 + 56 * DAY, 12 * HOUR)


def shared(seed: int, size: float, *, factor: float = 1.0, since: float = 1e9) -> list[Sample]:
    """Starts of which all of one day are longer or shorter together, by a spread of `size`."""
    rng = np.random.default_rng(seed)
    weather = np.exp(rng.normal(0, size, 60))
    some = starts(seed, days=56, factor=factor, since=since)
    return [replace(one, value=one.value * float(weather[(one.ts - T0) // DAY])) for one in some]


def test_days_that_are_bad_for_all_raise_few_false_alarms() -> None:
    number = sum(len(rounds({TTS: Times(shared(seed, 0.3))}, EVERY_12H)[1]) for seed in range(6))
    assert number <= 2


def test_what_lasts_is_found_in_any_weather() -> None:
    for seed in range(3):
        opened = rounds({TTS: Times(shared(seed, 0.2, factor=1.6, since=42))}, EVERY_12H)[1]
        assert [one for one in opened if T0 + 42 * DAY < one.found < T0 + 52 * DAY]


def test_independent_samples_weigh_as_much_as_ever() -> None:
    weights = []
    for seed in range(20):
        detector = Detector()
        rounds({TTS: Times(starts(seed, days=56, a_day=12))}, [T0 + 56 * DAY], detector=detector)
        track = detector.track(TTS)
        assert isinstance(track, TimesTrack)
        weights.append(track.shared)
    assert weights.count(1.0) >= 18


def test_a_share_that_is_worse_for_two_days_is_told_to_nobody() -> None:
    """A storm of preemptions makes a team wait for two days; a queue that stays full is told on the third."""

    def of(bad_days: float) -> list[Sample]:
        rng = np.random.default_rng(1)
        found = []
        for number, one in enumerate(starts(1, days=56)):
            day = (one.ts - T0) / DAY
            share = 0.8 + float(rng.normal(0, 0.03)) - (0.3 if 42 <= day < 42 + bad_days else 0.0)
            found.append(replace(one, id=f"{number}/0", value=share))
        return found

    assert not rounds({ETT: Times(of(2))}, EVERY_12H)[1]
    lasting = rounds({ETT: Times(of(14))}, EVERY_12H)[1]
    assert [one for one in lasting if T0 + 45 * DAY <= one.found <= T0 + 46 * DAY]
