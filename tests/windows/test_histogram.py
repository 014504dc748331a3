"""Durations counted by size: within 1 %, and signed."""

from bisect import bisect_left, bisect_right

from hypothesis import given
from hypothesis import strategies as st

from ettwatch_core.windows import bucket_of, middle_of, quantile

CENTURY_US = 100 * 366 * 86_400_000_000
durations = st.integers(0, CENTURY_US)


@given(durations)
def test_what_stands_for_a_duration_is_within_one_per_cent(us: int) -> None:
    assert abs(middle_of(bucket_of(us)) - us) * 100 <= us


def test_small_ones_are_exact() -> None:
    assert [middle_of(bucket_of(us)) for us in range(100)] == list(range(100))


def test_the_neighbours_of_every_bound() -> None:
    """At the begin and the end of each bucket the error is greatest."""
    for bucket in range(1, bucket_of(CENTURY_US)):
        middle = middle_of(bucket)
        begin = bisect_left(range(middle + 1), bucket, key=bucket_of)
        after = middle + bisect_right(range(middle, 2 * middle + 2), bucket, key=bucket_of)
        for us in (begin, after - 1):
            assert bucket_of(us) == bucket
            assert abs(middle - us) * 100 <= us


@given(st.lists(durations, min_size=1, max_size=60), st.integers(1, 100))
def test_quantiles_are_those_of_the_sorted_list(many: list[int], per_cent: int) -> None:
    counts: dict[int, int] = {}
    for us in many:
        counts[bucket_of(us)] = counts.get(bucket_of(us), 0) + 1
    true = sorted(many)[-(-len(many) * per_cent // 100) - 1]
    told = quantile(counts, per_cent)
    assert told is not None
    assert abs(told - true) * 100 <= true


def test_nothing_has_no_quantile() -> None:
    assert quantile({}, 50) is None
    assert quantile({3: 0}, 50) is None


def test_what_cannot_be_is_counted_at_the_ends() -> None:
    assert bucket_of(-5) == bucket_of(0) == 0
    assert bucket_of(10 * CENTURY_US) >= bucket_of(CENTURY_US)
