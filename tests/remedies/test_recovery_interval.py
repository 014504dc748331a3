"""The arithmetic of checkpoint intervals, and the interval that follows what is measured."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_trainer.remedies.recovery import AdaptiveInterval, daly, optimum, wasted_share, young

DAY_S = 86_400.0
BLOCKING = st.floats(min_value=0.001, max_value=600)
FAILURES = st.floats(min_value=0.01, max_value=200)


def test_the_published_curve_comes_out() -> None:
    """15 s of blocking and 3 failures a day: best at 929.5 s, where 3.2 % is wasted."""
    best = optimum(15, 3)
    assert round(best.interval_s, 1) == 929.5
    assert round(best.wasted_share * 100, 1) == 3.2
    shares = {each: wasted_share(each, blocking_s=15, failures_per_day=3) for each in (100, 300, 929.5, 3600, 14400)}
    assert min(shares, key=lambda each: shares[each]) == 929.5
    assert round(shares[100], 4) == round(15 / 100 + 50 * 3 / DAY_S, 4)
    assert round(shares[14400], 4) == round(15 / 14400 + 7200 * 3 / DAY_S, 4)


@given(BLOCKING, FAILURES, st.floats(min_value=0.05, max_value=20))
def test_no_other_interval_wastes_less(blocking_s: float, failures: float, times: float) -> None:
    best = optimum(blocking_s, failures)
    other = wasted_share(best.interval_s * times, blocking_s=blocking_s, failures_per_day=failures)
    assert best.wasted_share <= other + 1e-12


@given(BLOCKING, FAILURES, st.floats(min_value=0, max_value=1e4), st.floats(min_value=0, max_value=1e4))
def test_what_blocks_or_fails_more_never_wastes_less(
    blocking_s: float, failures: float, late: float, back: float
) -> None:
    first = optimum(blocking_s, failures, durable_after_s=late, recovery_s=back)
    assert optimum(blocking_s * 2, failures, durable_after_s=late, recovery_s=back).wasted_share >= first.wasted_share
    assert optimum(blocking_s, failures * 2, durable_after_s=late, recovery_s=back).wasted_share >= first.wasted_share
    assert first.interval_s >= late
    assert 0 <= first.wasted_share <= 1


@given(st.floats(min_value=0.001, max_value=5), st.floats(min_value=0.01, max_value=3))
def test_both_formulas_agree_where_saves_are_short(blocking_s: float, failures: float) -> None:
    assert daly(blocking_s, failures) == pytest.approx(young(blocking_s, failures), rel=0.02)


def test_dalys_formula() -> None:
    # By hand, M = 3600 s, δ = 100 s: √(2·100·3600)·(1 + √(100/7200)/3 + 100/7200/9) − 100
    assert daly(100, 24) == pytest.approx(848.528 * (1 + 0.117851 / 3 + 0.0138889 / 9) - 100, abs=0.01)
    assert daly(10_000, 24) == 3600.0


@given(BLOCKING, FAILURES, st.floats(min_value=1, max_value=1000), st.floats(min_value=1, max_value=100))
def test_the_bounds_hold(blocking_s: float, failures: float, minimum: float, times: float) -> None:
    found = optimum(blocking_s, failures, durable_after_s=5000, minimum_s=minimum, maximum_s=minimum * times)
    assert minimum <= found.interval_s <= minimum * times


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: wasted_share(0, blocking_s=1, failures_per_day=1), "interval_s: 0 cannot be; give more than 0"),
        (lambda: wasted_share(1, blocking_s=-1, failures_per_day=1), "blocking_s: -1 cannot be; give at least 0"),
        (lambda: wasted_share(1, blocking_s=1, failures_per_day=math.nan), "failures_per_day: nan cannot be"),
        (lambda: young(1, math.inf), "failures_per_day: inf"),
        (lambda: optimum(1, 0), "no interval is best .* give minimum_s and maximum_s"),
        (lambda: optimum(1, 1, minimum_s=5, maximum_s=4), "give 0 <= minimum <= maximum"),
        (lambda: AdaptiveInterval(minimum_s=0, maximum_s=4), "give 0 < minimum <= maximum"),
        (lambda: AdaptiveInterval(minimum_s=1, maximum_s=math.inf), "give 0 < minimum <= maximum"),
        (lambda: AdaptiveInterval(minimum_s=1, maximum_s=2, failures_per_day=-1), "failures_per_day: -1 cannot be"),
    ],
)
def test_what_cannot_be_is_refused(call: object, text: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=text):
        call()


def test_it_follows_what_saves_cost() -> None:
    made = AdaptiveInterval(minimum_s=1, maximum_s=10_000, failures_per_day=3, first_blocking_s=15)
    assert round(made.interval_s, 1) == 929.5
    made.begin(0.0)
    for number in range(1, 10):
        made.saved(number * 10.0, blocking_s=0.15)
    assert made.interval_s == pytest.approx(92.95, rel=0.01)


def test_one_slow_save_moves_nothing() -> None:
    made = AdaptiveInterval(minimum_s=1, maximum_s=10_000)
    made.begin(0.0)
    for number in range(1, 6):
        made.saved(float(number), blocking_s=1.0)
    before = made.interval_s
    made.saved(6.0, blocking_s=100.0)
    assert made.interval_s == before


def test_small_changes_do_not_make_it_flutter() -> None:
    made = AdaptiveInterval(minimum_s=1, maximum_s=10_000, change=0.2)
    made.begin(0.0)
    seen = set()
    for number in range(40):
        made.saved(float(number + 1), blocking_s=1.0 + (number % 2) * 0.2)
        seen.add(made.interval_s)
    assert len(seen) <= 2


def test_failures_make_it_shorter_and_quiet_days_longer() -> None:
    made = AdaptiveInterval(minimum_s=1, maximum_s=100_000, failures_per_day=3)
    made.begin(0.0)
    before = made.interval_s
    for number in range(1, 20):
        made.failed(number * 600.0)
    assert made.failures_per_day == pytest.approx((3 + 19) / (1 + 11_400 / DAY_S))
    assert made.interval_s < before * 0.6
    quiet = AdaptiveInterval(minimum_s=1, maximum_s=100_000, failures_per_day=3)
    quiet.begin(0.0)
    for day in range(1, 30):
        quiet.saved(day * DAY_S, blocking_s=1.0)
    assert quiet.failures_per_day == pytest.approx(0.1)
    assert quiet.interval_s > 4 * before


@given(st.lists(st.floats(min_value=0, max_value=1e5), max_size=20), st.lists(st.floats(min_value=0, max_value=1e6)))
def test_it_stays_within_its_bounds(blocking: list[float], times: list[float]) -> None:
    made = AdaptiveInterval(minimum_s=30, maximum_s=600)
    made.begin(0.0)
    for now, each in zip(sorted(times), blocking, strict=False):
        made.saved(now, each, durable_after_s=each * 3)
        made.failed(now)
        assert 30 <= made.interval_s <= 600


def test_an_attempt_that_left_no_word_has_failed_and_the_next_one_knows(tmp_path: Path) -> None:
    book = tmp_path / "checkpoints" / "interval.json"

    def attempt() -> AdaptiveInterval:
        return AdaptiveInterval(minimum_s=1, maximum_s=10_000, book=book)

    first = attempt()
    first.begin(0.0)
    first.saved(3600.0, blocking_s=2.0, durable_after_s=9.0)  # … and is killed
    second = attempt()
    second.begin(50.0)
    assert second.failures_per_day == pytest.approx((3 + 1) / (1 + 3600 / DAY_S))
    assert second.best.interval_s == pytest.approx(young(2.0, second.failures_per_day))
    second.ended(60.0)
    third = attempt()
    third.begin(0.0)
    assert third.failures_per_day == pytest.approx((3 + 1) / (1 + 3610 / DAY_S))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 2}', '{"version": 1, "seconds": -1}', '{"version": 1, "x": NaN}']
)
def test_a_book_that_cannot_be_read_says_nothing(tmp_path: Path, text: str) -> None:
    book = tmp_path / "interval.json"
    book.write_text(text)
    made = AdaptiveInterval(minimum_s=1, maximum_s=10_000, book=book)
    made.begin(0.0)
    assert made.failures_per_day == 3.0
    assert json.loads(book.read_text())["running"] is True


def test_a_book_that_cannot_be_written_is_no_reason_to_stop(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    made = AdaptiveInterval(minimum_s=1, maximum_s=10_000, book=tmp_path / "file" / "interval.json")
    made.begin(0.0)
    assert "cannot be written" in caplog.text
