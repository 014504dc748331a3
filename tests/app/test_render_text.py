"""Numbers and foreign names as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ettwatch_app.render.text import clean, count, duration, hours, moment, percent, share


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0000004, "0 us"),
        (0.000001, "1 us"),
        (0.25, "250 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1m 00s"),
        (60, "1m 00s"),
        (495, "8m 15s"),
        (3599.7, "1h 00m"),
        (3600, "1h 00m"),
        (6865, "1h 54m"),
        (86_399, "1d 00h"),
        (7_776_000, "90d 00h"),
        (-495, "-8m 15s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(min_value=0, max_value=1e10))
def test_durations_are_short(seconds: float) -> None:
    assert 3 <= len(duration(seconds)) <= 11


@given(st.floats(min_value=0, max_value=1e7), st.floats(min_value=0, max_value=1e7))
def test_no_part_of_a_duration_overflows(a: float, b: float) -> None:
    for seconds in (a, b):
        text = duration(seconds)
        assert "60s" not in text
        assert "60m" not in text
        assert "24h" not in text


def test_hours_and_shares() -> None:
    assert [hours(s) for s in (0, 151, 55_080, 4_444_444)] == ["0.0 h", "0.04 h", "15.3 h", "1,235 h"]
    assert (percent(1, 3), percent(1, 0), share(None), share(45.4236)) == ("33.3 %", "-", "-", "45.4 %")
    assert (count(1, "job"), count(1_000, "job"), count(2, "entry", "entries")) == ("1 job", "1,000 jobs", "2 entries")
    assert moment(1_790_000_000_999_999) == "2026-09-21 14:13:20 UTC"


@given(st.text(max_size=200), st.integers(8, 60))
def test_names_fit_and_cannot_steer_a_terminal(name: str, cells: int) -> None:
    shown = clean(name, cells)
    assert cell_len(shown) <= cells
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in shown)
    assert not any(char in shown for char in "\u202e\u2066\u2028\ufeff")


def test_long_names_keep_both_ends() -> None:
    shown = clean("job-" + "x" * 500 + "-end", 20)
    assert shown.startswith("job-")
    assert shown.endswith("-end")
    assert "…" in shown


def test_control_characters_are_shown_by_number() -> None:
    assert clean("a\x1b[31mb\n") == "a\\u001b[31mb\\u000a"
