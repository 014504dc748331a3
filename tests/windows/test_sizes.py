"""Which windows there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_core.windows import Sizes, SizesError

HOUR = 60
NOW = 29_933_280


def test_the_usual_ones() -> None:
    sizes = Sizes.parse()
    assert [(size.name, size.length, size.step) for size in sizes.all] == [
        ("1h", 60, 1),
        ("24h", 24 * HOUR, 5),
        ("7d", 7 * 24 * HOUR, 60),
    ]
    assert sizes.correct == 24 * HOUR


@pytest.mark.parametrize(
    ("lengths", "correct", "said"),
    [
        ("", "24h", "give one to 5 different lengths"),
        ("1h,60m", "24h", "give one to 5 different lengths"),
        ("1h,2h,3h,4h,5h,6h", "24h", "give one to 5 different lengths"),
        ("soon", "24h", "no duration"),
        ("90s", "24h", "whole minutes"),
        ("4m", "24h", "from 5m to 31d"),
        ("32d", "24h", "from 5m to 31d"),
        ("4h1m", "24h", "steps of 5m"),
        ("49h30m", "24h", "of 1h from 48h on"),
        ("1h", "90m", "whole hours"),
        ("1h", "0", "whole minutes"),
    ],
)
def test_what_cannot_be(lengths: str, correct: str, said: str) -> None:
    with pytest.raises(SizesError, match=said):
        Sizes.parse(lengths, correct)


@given(st.sampled_from(["1h", "1h,24h,7d", "90m,5h", "7d", "10m,47h,31d"]), st.integers(0, 40 * 24), st.integers(0, 59))
def test_every_window_that_is_corrected_can_be_cut_out_of_its_buckets(lengths: str, age: int, minute: int) -> None:
    """No window that may still be told begins or ends inside of a bucket."""
    sizes = Sizes.parse(lengths, "6h")
    now = NOW + minute
    hour = NOW // HOUR - age
    minutes = sizes.resolution(hour, now)
    begin, end = hour * HOUR, (hour + 1) * HOUR
    touched = False
    for size in sizes.all:
        for last in range(size.first_end(now - sizes.correct), size.last_end(now) + 1, size.step):
            for edge in (last - size.length, last):
                if begin < edge < end:
                    assert minutes is not None
                    assert (edge - begin) % minutes == 0
            touched = touched or (last - size.length < end and begin < last)
    assert not touched or minutes is not None


def test_buckets_only_ever_grow() -> None:
    sizes = Sizes.parse()
    seen = [sizes.resolution(NOW // HOUR, NOW + age * HOUR) for age in range(10 * 24)]
    known = [minutes for minutes in seen if minutes is not None]
    assert known == sorted(known)
    assert set(known) == {1, 5, 60}
    assert seen[len(known) :] == [None] * (len(seen) - len(known))
