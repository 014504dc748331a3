from dataclasses import replace

import numpy as np
import pytest

from ettwatch_monitor.alerts.detect import Book, Detector, Exposure, Rate, Settings
from support.regress import DAY, HOUR, NOF, T0, failures, look, rounds

EVERY_12H = range(T0 + 44 * DAY, T0 + 84 * DAY, 12 * HOUR)


@pytest.mark.parametrize("seed", range(4))
def test_a_doubling_is_found(seed: int) -> None:
    stream = failures(seed, factor=2.0, since=60)
    found = [one for one in rounds({NOF: stream}, EVERY_12H)[1] if one.found > T0 + 60 * DAY]
    assert found
    one = found[0].effect
    assert one is not None
    assert one.ratio_from < 2.2
    assert one.ratio_to > 1.6
    assert one.high[1] > 1.3 * one.low[1]


def test_the_p_value_keeps_its_word() -> None:
    p_values = [look(T0 + 84 * DAY, {NOF: failures(seed + 100)}).looks[NOF].p for seed in range(150)]
    for share in (0.05, 0.1, 0.2):
        most = share + 3 * np.sqrt(share * (1 - share) / len(p_values))
        assert np.mean(np.array(p_values) <= share) <= most


def test_a_tripled_rate_is_found_by_its_first_failures() -> None:
    """The best test of a rate that is known needs some ten failures for 3 times the rate; this one may need twenty."""
    late = []
    for seed in range(10):
        stream = failures(seed + 40, factor=3.0, since=60)
        _, found, _ = rounds({NOF: stream}, range(T0 + 60 * DAY, T0 + 72 * DAY, 6 * HOUR))
        late.append(sum(T0 + 60 * DAY <= one.ts <= found[0].found for one in stream.failures) if found else 999)
    assert sorted(late)[5] <= 14
    assert sorted(late)[8] <= 24


def test_looking_all_the_time_raises_few_false_alarms() -> None:
    times = range(T0 + 42 * DAY, T0 + 84 * DAY, 12 * HOUR)
    number = sum(len(rounds({NOF: failures(seed + 300)}, times)[1]) for seed in range(16))
    assert number <= 5


def test_the_unit_of_exposure_plays_no_part() -> None:
    stream = failures(1, factor=2.0, since=60)
    more = Rate(stream.failures, Exposure(stream.exposure.start, stream.exposure.hours * 1000, stream.exposure.end))
    now = T0 + 70 * DAY
    one, other = look(now, {NOF: stream}).looks[NOF], look(now, {NOF: more}).looks[NOF]
    assert one.p == pytest.approx(other.p)
    assert one.onset == other.onset


def test_twice_the_jobs_may_fail_twice_as_often() -> None:
    false = 0
    for seed in range(20, 26):
        stream = failures(seed, factor=2.0, since=60)
        hours = stream.exposure.hours.copy()
        hours[60 * 24 :] *= 2
        grown = Rate(stream.failures, Exposure(T0, hours, stream.exposure.end))
        false += len([one for one in rounds({NOF: grown}, EVERY_12H[::2])[1] if one.found > T0 + 60 * DAY])
    assert false <= 1


def test_one_burst_is_one_event() -> None:
    stream = failures(3)
    at = T0 + 80 * DAY
    burst = [
        replace(stream.failures[0], ts=at + n * 1_000_000, id=f"burst-{n}/0", job=f"burst-{n}") for n in range(100)
    ]
    assert not rounds({NOF: Rate([*stream.failures, *burst], stream.exposure)}, [at + HOUR, at + DAY])[1]


def test_a_crash_loop_of_one_job_is_no_rate_of_its_team() -> None:
    stream = failures(3)
    at = T0 + 80 * DAY
    loop = [replace(stream.failures[0], ts=at + n * HOUR // 4, id=f"loop/{n}", job="loop") for n in range(90)]
    assert not rounds({NOF: Rate([*stream.failures, *loop], stream.exposure)}, [at + HOUR, at + DAY])[1]


def test_planned_maintenance_does_not_count() -> None:
    stream = failures(4)
    planned = [
        replace(stream.failures[0], ts=T0 + 80 * DAY + n * HOUR // 2, id=f"p{n}/0", job=f"p{n}", cause="maintenance")
        for n in range(80)
    ]
    assert not rounds({NOF: Rate([*stream.failures, *planned], stream.exposure)}, [T0 + 82 * DAY])[1]


def test_it_recovers_when_failures_are_rare_again() -> None:
    bad, good = failures(5, factor=4.0, since=50), failures(6)
    both = [one for one in bad.failures if one.ts < T0 + 58 * DAY] + [
        replace(one, id=f"late-{one.id}", job=f"late-{one.job}") for one in good.failures if one.ts >= T0 + 58 * DAY
    ]
    _, opened, closed = rounds({NOF: Rate(both, bad.exposure)}, EVERY_12H)
    assert len(opened) == 1
    assert [one.ending for one in closed] == ["recovered"]
    assert T0 + 56 * DAY < (closed[0].back or 0) < T0 + 64 * DAY


def test_restarts_and_order_change_nothing() -> None:
    stream = failures(7, factor=3.0, since=60)
    times = range(T0 + 60 * DAY, T0 + 84 * DAY, 2 * DAY)
    told = rounds({NOF: stream}, times)
    assert told[1]
    turned = Rate([*stream.failures[::-1], *stream.failures[:20]], stream.exposure)
    assert rounds({NOF: turned}, times, anew=True) == told


@pytest.mark.parametrize("stream", [Rate([], Exposure(T0, np.zeros(0), T0)), Rate([], Exposure(T0, np.ones(999), T0))])
def test_no_failures_are_no_news(stream: Rate) -> None:
    told = Detector(Settings()).look(T0 + 84 * DAY, {NOF: stream}, Book())
    assert told.waiting == (NOF,)
