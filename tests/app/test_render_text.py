"""Numbers and foreign names as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ettwatch_app.render.text import GpuTime, clean, count, duration, moment, percent, share


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


@pytest.mark.parametrize(
    ("gpu_seconds", "texts", "unit"),
    [
        ((), (), "GPU-hours"),
        ((0.0,), ("0.00",), "GPU-hours"),
        ((0.2504, 0.0), ("0.250", "0.000"), "GPU-seconds"),
        ((47.68, 19.1, 0.0), ("47.7", "19.1", "0.0"), "GPU-seconds"),
        ((59.96, 59.94), ("1.0", "1.0"), "GPU-minutes"),
        ((3_500.0, 19.1), ("58.3", "0.3"), "GPU-minutes"),
        ((29_980.0, 151.0, 0.0), ("8.33", "0.04", "0.00"), "GPU-hours"),
        ((4_444_444.0, 1_800.0), ("1,234.6", "0.5"), "GPU-hours"),
        ((147_924_000.0, 40_582_800.0), ("41,090", "11,273"), "GPU-hours"),
        ((-0.0001, 5.0), ("0.0", "5.0"), "GPU-seconds"),
    ],
)
def test_gpu_time_has_the_unit_of_its_largest_amount(
    gpu_seconds: tuple[float, ...], texts: tuple[str, ...], unit: str
) -> None:
    found = GpuTime.of(gpu_seconds)
    assert (found.long, tuple(map(found.write, gpu_seconds))) == (unit, texts)


@given(st.lists(st.floats(min_value=0, max_value=1e9), min_size=1))
def test_a_column_of_gpu_time_has_one_number_of_decimals_and_shows_its_largest(column: list[float]) -> None:
    unit = GpuTime.of(column)
    texts = [unit.write(gpu_seconds) for gpu_seconds in column]
    assert len({len(text.partition(".")[2]) for text in texts}) == 1
    largest = unit.write(max(column))
    assert max(column) < 0.0005 or float(largest.replace(",", "")) > 0
    assert (unit.size_s, unit.short) in {(3_600, "GPU-h"), (60, "GPU-min"), (1, "GPU-s")}


def test_shares_counts_and_times() -> None:
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
