"""The parts of the detector by themselves: calendar, profile, false discoveries, what is told together."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from ettwatch_monitor.alerts.detect import FLEET, Book, Calendar, Effect, Look, Settings, StreamKey, Times
from ettwatch_monitor.alerts.detect.fdr import discoveries
from ettwatch_monitor.alerts.detect.gather import gather
from ettwatch_monitor.alerts.detect.profile import fit_hazard, fit_levels
from ettwatch_monitor.alerts.detect.times import hodges_lehmann
from support.regress import DAY, HOUR, T0, look, starts


def us(year: int, month: int, day: int, hour: int, zone: str = "UTC") -> int:
    return int(datetime(year, month, day, hour, tzinfo=ZoneInfo(zone)).timestamp() * 1e6)


def test_an_hour_of_the_week_stays_its_own_across_a_change_of_clocks() -> None:
    calendar = Calendar("Europe/Berlin")
    before, after = us(2026, 3, 27, 10, "Europe/Berlin"), us(2026, 4, 3, 10, "Europe/Berlin")
    assert after - before == 167 * HOUR
    assert calendar.bin(before) == calendar.bin(after)
    weeks = {
        calendar.week(ts) for ts in range(us(2026, 3, 23, 0, "Europe/Berlin"), us(2026, 4, 6, 0, "Europe/Berlin"), HOUR)
    }
    assert weeks == {us(2026, 3, 23, 0, "Europe/Berlin"), us(2026, 3, 30, 0, "Europe/Berlin")}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/New_York", "Australia/Lord_Howe"])
def test_bins_are_those_of_the_local_clock(zone: str) -> None:
    calendar = Calendar(zone)
    for ts in range(T0, T0 + 400 * DAY, 37 * HOUR // 2):
        local = datetime.fromtimestamp(ts / 1e6, UTC).astimezone(ZoneInfo(zone))
        assert calendar.bin(ts) == local.weekday() * 8 + local.hour // 3
        week = datetime.fromtimestamp(calendar.week(ts) / 1e6, UTC).astimezone(ZoneInfo(zone))
        assert (week.weekday(), week.hour, week.minute) == (0, 0, 0)
        assert 0 <= ts - calendar.week(ts) < 7 * DAY + HOUR


def test_an_unknown_zone_is_refused() -> None:
    for name in ("Mars/Olympus", "", "../etc/passwd"):
        with pytest.raises(ValueError, match="there is no time zone"):
            Calendar(name)


def test_a_profile_learns_a_swing_and_makes_none_up() -> None:
    rng = np.random.default_rng(1)
    bins = rng.integers(0, 56, 4000)
    swing = np.where(bins % 8 == 4, 0.5, 0.0)
    learnt = fit_levels(rng.normal(0, 0.3, 4000) + swing, bins)
    assert learnt[4::8].min() - np.delete(learnt, np.arange(4, 56, 8)).max() > 0.25
    assert np.abs(fit_levels(rng.normal(0, 0.3, 40), rng.integers(0, 56, 40))).max() < 0.3


def test_a_hazard_is_one_where_nothing_is_known() -> None:
    assert (fit_hazard(np.zeros(56), np.ones(56)) == 1).all()
    counts = np.where(np.arange(56) % 8 == 4, 30.0, 10.0)
    assert fit_hazard(counts, np.ones(56))[4] > 1.5


def test_false_discoveries_are_at_most_the_rate() -> None:
    rng = np.random.default_rng(2)
    for weights in (np.ones(50), np.where(np.arange(50) < 5, 5.0, 0.5)):
        shares = []
        for _ in range(400):
            p = rng.uniform(0, 1, 50)
            p[:10] = rng.uniform(0, 1e-4, 10)
            found = np.array(discoveries(list(p), list(weights), 0.1))
            shares.append(found[10:].sum() / max(found.sum(), 1))
        assert np.mean(shares) <= 0.11


def test_discoveries_with_any_dependence_are_fewer_and_their_order_plays_no_part() -> None:
    p = [0.001, 0.004, 0.02, 0.5, 0.03]
    some, fewer = (discoveries(p, [1.0] * 5, 0.05, kind) for kind in ("positive", "any"))
    assert some == [True, True, True, False, True]
    assert fewer == [True, True, False, False, False]
    assert discoveries(p[::-1], [1.0] * 5, 0.05) == some[::-1]
    assert discoveries([], [], 0.1) == []


def test_the_shift_of_two_samples_is_within_its_interval() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(200):
        middle, low, high = hodges_lehmann(rng.normal(0, 1, 60), rng.normal(0.5, 1, 25))
        assert low <= middle <= high
        held += low <= 0.5 <= high
    assert held >= 180


EFFECT = Effect(100, 20, 100, 20, (1, 2, 3), (2, 3, 4), 1.5, 1.3, 1.7, 0.0, 1.4, 1.0, 1e-6)


def found(metric: str, team: str, onset: int, p: float = 1e-6) -> tuple[StreamKey, Look, Effect]:
    return StreamKey(metric, (("team", team),)), Look(p, onset, onset, onset, 100, 20, 10.0), EFFECT


def test_what_moves_together_in_a_team_is_one_alert() -> None:
    some = [found("tts", "a", T0), found("compile", "a", T0 + HOUR), found("nof", "a", T0)]
    looks = {key: look for key, look, _ in some}
    book, opened, _ = gather(T0, some, looks, Book(), Settings(storm_least=9))
    assert [str(one.key) for one in opened] == ["tts|team=a", "nof|team=a"]
    assert [str(key) for key in opened[0].also] == ["compile|team=a"]
    assert gather(T0, some, looks, book, Settings(storm_least=9)) == (book, [], [])


def test_what_moves_at_another_time_is_another_alert() -> None:
    some = [found("tts", "a", T0), found("compile", "a", T0 + 20 * DAY)]
    _, opened, _ = gather(T0, some, {}, Book(), Settings(storm_least=9))
    assert len(opened) == 2


def test_a_storm_is_one_alert_of_the_fleet() -> None:
    some = [found("tts", team, T0 + n * HOUR) for n, team in enumerate("abcdefgh")]
    looks = {key: look for key, look, _ in some}
    book, opened, _ = gather(T0, some, looks, Book(), Settings())
    assert [one.key for one in opened] == [StreamKey("tts", FLEET)]
    assert len(opened[0].also) == 8
    assert opened[0].sort == "fleet"
    late = [found("tts", "late", T0 + HOUR)]
    assert gather(T0, late, dict(looks), book, Settings())[1] == []


def test_two_of_many_teams_are_no_storm() -> None:
    some = [found("tts", team, T0) for team in "ab"]
    looks = {found("tts", team, T0)[0]: some[0][1] for team in "abcdefgh"}
    assert len(gather(T0, some, looks, Book(), Settings())[1]) == 2


def test_there_is_a_limit_to_new_alerts() -> None:
    some = [found("tts", f"t{n}", T0 + n * 10 * DAY) for n in range(30)]
    book, opened, _ = gather(T0, some, {}, Book(), Settings(storm_least=99, most_new=5))
    assert len(opened) == 5
    assert len(list(book.all_open())) == 5
    assert sum(len(one.also) for one in opened) == 26


def test_all_teams_slow_at_once_is_one_alert_from_samples_too() -> None:
    streams = {
        StreamKey("tts", (("team", team),)): Times(starts(n, factor=1.8, since=38, team=team, a_day=10))
        for n, team in enumerate("abcde")
    }
    told = look(T0 + 42 * DAY, streams)
    assert [one.key.scope for one in told.opened] == [FLEET]
    assert {key.labels["team"] for key in told.opened[0].also} == set("abcde")
