"""The timeline as cells."""

from hypothesis import given
from hypothesis import strategies as st

from ettwatch_app.render.lanes import axis, lanes, ticks
from ettwatch_app.render.palette import LOOKS
from ettwatch_app.render.views import Mark
from ettwatch_schemas import Segment

S = 1_000_000


def segment(attempt: int, stage: str, start: int, end: int) -> Segment:
    return Segment("job", attempt, stage, start * S, end * S, 8)


def drawn(segments: list[Segment], end: int, columns: int, marks: tuple[Mark, ...] = ()) -> list[str]:
    return [
        "".join(" " if cell is None else LOOKS[cell].letter for cell in lane.cells)
        for lane in lanes(segments, [], marks, 0, end * S, columns)
    ]


def test_one_lane_for_each_attempt() -> None:
    segments = [
        segment(0, "scheduling", 0, 10),
        segment(0, "effective_training", 10, 50),
        segment(1, "trainer_init.pre_train", 50, 60),
        segment(1, "shutdown", 60, 100),
    ]
    assert drawn(segments, 100, 10) == ["S====     ", "     IDDDD"]


def test_a_cell_shows_what_took_most_of_it() -> None:
    segments = [segment(0, "scheduling", 0, 4), segment(0, "wasted_training.hang", 4, 10)]
    assert drawn(segments, 10, 1) == ["W"]
    # Many short stretches of one component together outweigh a longer one of another.
    parts = [segment(0, "effective_training", at, at + 1) for at in (0, 2, 5, 7)]
    others = [segment(0, stage, at, at + n) for stage, at, n in (
        ("wasted_training", 1, 1), ("pt2_compilation", 3, 2), ("shutdown", 6, 1), ("scheduling", 8, 1))]  # fmt: skip
    assert drawn([*parts, *others], 9, 1) == ["="]


def test_nothing_and_no_time_are_drawn_without_harm() -> None:
    assert drawn([], 10, 10) == []
    assert drawn([segment(0, "scheduling", 0, 0)], 0, 10) == [" " * 10]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(1, 200))
def test_a_gapless_timeline_has_no_empty_cell(lengths: list[int], columns: int) -> None:
    at = 0
    segments = []
    for place, length in enumerate(lengths):
        segments.append(segment(0, ("shutdown", "scheduling", "effective_training")[place % 3], at, at + length))
        at += length
    (row,) = drawn(segments, at, columns)
    assert len(row) == columns
    assert " " not in row


def test_marks_stand_under_their_time() -> None:
    segments = [segment(0, "effective_training", 0, 100)]
    (lane,) = lanes(segments, [], [Mark(0, 55 * S, "checkpoint"), Mark(0, 100 * S, "checkpoint")], 0, 100 * S, 10)
    assert "".join(lane.marks) == "     ^   ^"


@given(st.integers(0, 10**15), st.integers(20, 300))
def test_labels_of_the_axis_never_touch(length: int, columns: int) -> None:
    marked = ticks(length, columns)
    assert marked[0] == (0, "0")
    labels, line = axis(marked, columns)
    assert len(labels) <= columns
    assert len(line) == columns
    assert set(labels.split()) <= {label for _, label in marked}


def test_the_axis_has_round_times() -> None:
    assert [label for _, label in ticks(6865 * S, 97)] == [
        "0", "15m", "30m", "45m", "1h", "1h15m", "1h30m", "1h45m",
    ]  # fmt: skip
