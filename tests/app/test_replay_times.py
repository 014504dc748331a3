"""Durations and times as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_app.replay import parse_duration, parse_instant
from ettwatch_schemas import MAX_TS, MIN_TS


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("6h", 21_600_000_000),
        ("90m", 5_400_000_000),
        ("300s", 300_000_000),
        ("21600", 21_600_000_000),
        ("1h30m", 5_400_000_000),
        ("1.5h", 5_400_000_000),
        ("2d", 172_800_000_000),
        ("500ms", 500_000),
        ("7us", 7),
        ("1m1ms", 60_001_000),
        (" 6H ", 21_600_000_000),
        ("0", 0),
    ],
)
def test_durations(text: str, us: int) -> None:
    assert parse_duration(text) == us


@pytest.mark.parametrize("text", ["", "h", "6 h", "-6h", "6h!", "six", "1e3", "6hh", "1m m", "∞", "6weeks", "٣h"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 6h, 90m, 300s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1790000000000000", 1_790_000_000_000_000),
        ("2026-09-21T14:13:20Z", 1_790_000_000_000_000),
        ("2026-09-21T14:13:20.000001+00:00", 1_790_000_000_000_001),
        ("2026-09-21 16:13:20+02:00", 1_790_000_000_000_000),
    ],
)
def test_instants(text: str, us: int) -> None:
    assert parse_instant(text) == us


@given(st.integers(MIN_TS, MAX_TS))
def test_every_time_of_the_wire_can_be_typed(us: int) -> None:
    assert parse_instant(str(us)) == us


@given(st.integers(MIN_TS, MAX_TS), st.sampled_from([(10**6, "seconds"), (10**3, "milliseconds")]))
def test_other_units_are_named(us: int, unit: tuple[int, str]) -> None:
    with pytest.raises(ValueError, match=rf"is in {unit[1]}; give microseconds"):
        parse_instant(str(us // unit[0]))
    with pytest.raises(ValueError, match="is in nanoseconds; give microseconds"):
        parse_instant(str(us * 1_000))


def test_endless_digits_are_told_in_short() -> None:
    for parse in (parse_instant, parse_duration):
        with pytest.raises(ValueError, match=r"is no time from 2000 to 2199|is more than 100 years") as told:
            parse("9" * 5_000)
        assert len(str(told.value)) < 200
