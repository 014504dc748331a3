"""Hours: cut out one by one, or taken out where one segment fills them, they are the same."""

from hypothesis import given
from hypothesis import strategies as st

from ettwatch_core import CELL, apart, cells
from ettwatch_schemas import Segment

LENGTHS = st.one_of(st.integers(1, CELL), st.integers(CELL // 2, 9 * CELL), st.sampled_from((CELL, 2 * CELL, 3 * CELL)))


def row(lengths: list[int], begin: int) -> list[Segment]:
    """Segments of these lengths, one after the other."""
    out = []
    for number, length in enumerate(lengths):
        stage = ("scheduling", "effective", "wasted_training.rework")[number % 3]
        out.append(Segment("j", number // 4, stage, begin, begin + length, 8))
        begin += length
    return out


@given(st.lists(LENGTHS, max_size=12), st.integers(0, 3 * CELL))
def test_taken_apart_they_are_the_same_hours(lengths: list[int], begin: int) -> None:
    segments = row(lengths, begin)
    rest, filled = apart(segments)
    assert all(end - begin >= 2 * CELL for begin, end, _ in filled)
    whole = {
        cell: [segment._replace(start=cell, end=cell + CELL)]
        for begin, end, segment in filled
        for cell in range(begin, end, CELL)
    }
    found = cells(rest)
    assert not found.keys() & whole.keys()
    assert dict(sorted({**found, **whole}.items())) == cells(segments)


def test_of_decades_hardly_anything_is_left_to_be_cut() -> None:
    """A clock that stood at the year 2000 costs a job no more than two hours a segment each time that it is told."""
    rest, ((begin, end, segment),) = apart(row([60, 26 * 365 * 24 * CELL, 90], 17))
    assert len(cells(rest)) <= 3
    assert (begin % CELL, end % CELL, segment.stage) == (0, 0, "effective")
