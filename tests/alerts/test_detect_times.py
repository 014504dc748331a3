from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ettwatch_monitor.alerts.detect import Book, Detector, Sample, Settings, StreamKey, Times
from support.regress import DAY, HOUR, T0, TTS, look, rounds, starts

EVERY_6H = range(T0 + 21 * DAY, T0 + 42 * DAY, 6 * HOUR)


def test_a_rise_is_found_and_told_from_what_to_what_and_since_when() -> None:
    stream = Times(starts(1, factor=1.4, since=30))
    _, opened, _ = rounds({TTS: stream}, EVERY_6H)
    assert [one.key for one in opened] == [TTS]
    one = opened[0]
    assert one.effect is not None
    assert one.effect.ratio_from < 1.4 < one.effect.ratio_to
    assert abs(one.onset - (T0 + 30 * DAY)) < 2 * DAY
    assert one.earliest <= one.onset <= one.latest
    assert one.effect.high[1] > 1.2 * one.effect.low[1]
    assert one.effect.p_two_sample < 0.001


@pytest.mark.parametrize("seed", range(3))
def test_a_fifth_more_is_found_within_a_hundred_starts(seed: int) -> None:
    samples = starts(seed, factor=1.2, since=30)
    _, opened, _ = rounds({TTS: Times(samples)}, EVERY_6H)
    found = [one for one in opened if one.found > T0 + 30 * DAY]
    assert found
    assert sum(T0 + 30 * DAY <= sample.ts <= found[0].found for sample in samples) <= 130


def test_the_p_value_keeps_its_word_at_any_look() -> None:
    """Of looks at streams in which nothing happens at most a share of a says p <= a, also with swings by day."""
    p_values = []
    for seed in range(150):
        some = starts(seed + 1000, days=28, a_day=10, models=1, swing=0.15 * (seed % 2))
        told = look(T0 + 28 * DAY, {TTS: Times(some)})
        p_values.append(told.looks[TTS].p)
    for share in (0.05, 0.1, 0.2):
        most = share + 3 * np.sqrt(share * (1 - share) / len(p_values))
        assert np.mean(np.array(p_values) <= share) <= most


def test_looking_all_the_time_raises_few_false_alarms() -> None:
    """Three weeks of looks every twelve hours at each of 20 streams of 240 starts: hardly a false alarm."""
    times = range(T0 + 21 * DAY, T0 + 42 * DAY, 12 * HOUR)
    number = sum(len(rounds({TTS: Times(starts(seed + 500, a_day=12, swing=0.1))}, times)[1]) for seed in range(20))
    assert number <= 2


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_order_and_doubles_play_no_part(seed: int, rng: Random) -> None:
    samples = starts(seed, factor=1.5, since=35, a_day=8)
    mixed = samples + rng.sample(samples, len(samples) // 3)
    rng.shuffle(mixed)
    now = T0 + 42 * DAY
    one, other = look(now, {TTS: Times(samples)}), look(now, {TTS: Times(mixed)})
    assert one == other


def test_what_comes_late_is_judged_as_if_it_had_been_there() -> None:
    samples = starts(3, factor=1.3, since=34)
    late = samples[::7]
    now = T0 + 41 * DAY
    detector = Detector()
    detector.look(now, {TTS: Times([one for one in samples if one not in late])}, Book())
    assert detector.look(now, {TTS: Times(samples)}, Book()) == look(now, {TTS: Times(samples)})


def test_a_sample_that_is_corrected_counts_as_corrected() -> None:
    samples = starts(3)
    wrong = [replace(one, value=one.value * 50) for one in samples[-30:]]
    now = T0 + 42 * DAY
    detector = Detector()
    assert detector.look(now, {TTS: Times(samples[:-30] + wrong)}, Book()).opened
    assert not detector.look(now, {TTS: Times(samples)}, Book()).opened


def test_a_restart_at_any_time_changes_nothing() -> None:
    streams = {TTS: Times(starts(2, factor=1.5, since=24, until=28, days=34))}
    times = range(T0 + 23 * DAY, T0 + 34 * DAY, 12 * HOUR)
    book, opened, closed = rounds(streams, times)
    assert opened
    assert closed
    assert rounds(streams, times, anew=True) == (book, opened, closed)


def test_the_same_data_twice_raises_nothing_anew() -> None:
    streams = {TTS: Times(starts(1, factor=1.4, since=30, until=35))}
    book, opened, _ = rounds(streams, EVERY_6H)
    again, more, _ = rounds(streams, [EVERY_6H[-1]] * 3, book=book)
    assert len(opened) == 1
    assert not more
    assert again == book


def test_a_level_that_comes_back_resolves_once_and_does_not_flap() -> None:
    streams = {TTS: Times(starts(5, factor=1.5, since=25, until=31))}
    book, opened, closed = rounds(streams, EVERY_6H)
    assert [one.key for one in opened] == [TTS]
    assert [one.ending for one in closed] == ["recovered"]
    assert closed[0].back is not None
    assert abs(closed[0].back - (T0 + 31 * DAY)) < 2 * DAY
    assert not list(book.all_open())


def test_a_level_that_stays_is_usual_after_a_while() -> None:
    streams = {TTS: Times(starts(6, factor=1.5, since=25, days=60, a_day=12))}
    times = range(T0 + 24 * DAY, T0 + 60 * DAY, 12 * HOUR)
    book, opened, closed = rounds(streams, times)
    assert [one.ending for one in closed] == ["accepted"]
    assert len(opened) == 1
    assert book.cut(TTS) == opened[0].onset


def test_an_alert_without_samples_ends_as_quiet() -> None:
    samples = starts(6, factor=1.5, since=25, days=32)
    _, opened, closed = rounds({TTS: Times(samples)}, range(T0 + 21 * DAY, T0 + 60 * DAY, DAY))
    assert len(opened) == 1
    assert [one.ending for one in closed] == ["quiet"]


def test_another_mix_of_models_is_no_regression() -> None:
    samples = starts(7, models=3)
    since = T0 + 30 * DAY
    # From then on only the slow model is started.
    slow = [one for one in samples if one.ts < since or one.model == "m2"]
    assert not rounds({TTS: Times(slow)}, EVERY_6H)[1]


def test_a_new_slow_model_is_no_regression() -> None:
    samples = starts(8)
    new = [
        replace(one, model="new", value=one.value * 5) if one.ts > T0 + 30 * DAY and n % 3 == 0 else one
        for n, one in enumerate(samples)
    ]
    assert not rounds({TTS: Times(new)}, EVERY_6H)[1]


def test_three_of_four_samples_raise_no_alarm() -> None:
    samples = starts(9, days=31)
    few = [replace(one, value=one.value * 10) if one.ts > T0 + 30 * DAY else one for one in samples]
    few = [one for one in few if one.ts <= T0 + 30 * DAY] + [one for one in few if one.ts > T0 + 30 * DAY][:4]
    assert not rounds({TTS: Times(few)}, range(T0 + 29 * DAY, T0 + 40 * DAY, 6 * HOUR))[1]


@pytest.mark.parametrize("number", [0, 1, 2, 10])
def test_a_team_with_hardly_any_job_waits(number: int) -> None:
    told = look(T0 + 42 * DAY, {TTS: Times(starts(1)[:number])})
    assert told.waiting == (TTS,)
    assert not told.looks
    assert not told.opened


def test_an_empty_fleet_is_fine() -> None:
    told = look(T0, {})
    assert (told.opened, told.closed, told.looks, told.waiting) == ((), (), {}, ())


def test_one_job_that_restarts_over_and_over_does_not_speak_for_its_team() -> None:
    key = StreamKey("ttr", TTS.scope)
    samples = starts(11)
    since = T0 + 35 * DAY
    loop = [Sample(since + n * 60_000_000, f"loop/{n}", "loop", 10_000.0, "ads", "m0", "c1", 8) for n in range(200)]
    assert not rounds({key: Times(samples + loop)}, [since + 6 * HOUR, since + 12 * HOUR])[1]


def test_a_swing_of_day_and_week_is_usual_also_when_the_clocks_change() -> None:
    """From 25 January to 26 April: on working days by day all takes half again as long, by the clock of Berlin."""
    from ettwatch_monitor.alerts.detect import Calendar

    calendar = Calendar("Europe/Berlin")
    samples = []
    for one in starts(12, days=105, a_day=16):
        weekday, block = divmod(calendar.bin(one.ts), 8)
        busy = weekday < 5 and 3 <= block < 6
        samples.append(replace(one, value=one.value * (1.5 if busy else 1.0)))
    zoned = Detector(Settings(zone="Europe/Berlin"))
    assert not rounds({TTS: Times(samples)}, range(T0 + 42 * DAY, T0 + 105 * DAY, 12 * HOUR), detector=zoned)[1]


def test_small_changes_are_not_told_however_sure() -> None:
    many = starts(13, factor=1.06, since=25, a_day=100)
    assert not rounds({TTS: Times(many)}, range(T0 + 25 * DAY, T0 + 42 * DAY, DAY))[1]


def test_less_effective_time_is_worse_and_more_is_not() -> None:
    key = StreamKey("ett", TTS.scope)
    for factor, found in ((0.7, 1), (1.3, 0)):
        shares = [
            replace(one, value=float(np.clip(0.0014 * one.value**0.98, 0.01, 0.99)))
            for one in starts(14, factor=factor, since=30, models=1)
        ]
        opened = rounds({key: Times(shares)}, range(T0 + 28 * DAY, T0 + 42 * DAY, DAY))[1]
        assert len(opened) == found
