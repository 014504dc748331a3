"""Which record comes next, and whether more wait to be read."""

import pytest

from ettwatch_faust.place import Next, Place


def test_records_in_their_order_are_taken_and_those_before_are_known() -> None:
    place = Place(5)
    judged = [(offset, place.judge(offset, 0.0)) for offset in (4, 5, 6, 5, 6, 7, 0)]
    assert [offset for offset, verdict in judged if verdict is Next.TAKE] == [5, 6, 7]
    assert {verdict for _, verdict in judged} == {Next.TAKE, Next.SEEN}


def test_what_is_missing_is_asked_for_once_in_a_while() -> None:
    place = Place(0)
    assert [place.judge(3, now_s) for now_s in (0.0, 0.1, 1.9, 2.0, 2.1)] == [
        Next.SEEK,
        Next.SKIP,
        Next.SKIP,
        Next.SEEK,
        Next.SKIP,
    ]
    assert place.judge(0, 2.2) is Next.TAKE
    assert place.judge(3, 2.3) is Next.SEEK, "another gap"


def test_it_says_now_and_then_that_a_record_does_not_come() -> None:
    place = Place(0)
    assert [place.stalled(None, 0.0), place.stalled(0, 9.0)] == [False, False], "nothing has to come"
    said = [place.stalled(1, now_s) for now_s in (10.0, 14.9, 15.0, 16.0, 20.0)]
    assert said == [False, False, True, False, True]
    place.judge(0, 21.0)
    assert [place.stalled(2, now_s) for now_s in (21.0, 25.0)] == [False, False], "it has moved"
    assert place.stalled(2, 26.0)


def test_where_there_is_nothing_it_goes_on_behind_it() -> None:
    place = Place(0)
    place.judge(9, 0.0)
    place.found(0, 4)
    assert place.next == 4
    assert place.judge(9, 0.1) is Next.SKIP, "it is on its way from before"
    assert place.judge(4, 0.2) is Next.TAKE
    place.found(0, 7)
    assert place.next == 5, "that answer is an old one"
    place.found(5, 5)
    place.found(5, 3)
    assert place.next == 5


def test_how_far_it_is_behind() -> None:
    place = Place(10)
    assert place.lag(None, 100.0) == (0, 0.0)
    assert place.lag(10, 100.0) == (0, 0.0)
    assert place.lag(14, 100.0) == (4, 0.0), "nothing was read yet"
    place.stamp_s = 98.5
    assert place.lag(14, 100.0) == (4, 1.5)
    assert place.lag(14, 90.0) == (4, 0.0), "the broker's clock is ahead"
    assert place.lag(10, 200.0) == (0, 0.0)
    assert place.lag(8, 200.0) == (0, 0.0)


def test_it_is_behind_until_it_has_read_what_was_there_at_the_begin() -> None:
    place = Place(0)
    assert place.behind(None, 100.0, 0.0)
    assert place.behind(2, 100.0, 0.0)
    place.judge(0, 0.0)
    place.stamp_s = 99.9
    assert place.behind(2, 100.0, 0.0), "however new its records are"
    place.judge(1, 0.0)
    assert not place.behind(3, 100.0, 0.0)


def test_an_empty_partition_is_not_behind() -> None:
    assert not Place(0).behind(0, 100.0, 0.0)


@pytest.mark.parametrize(("delay_s", "behind"), [(0.1, False), (4.9, False), (5.1, True)])
def test_later_a_few_seconds_do_not_count(delay_s: float, behind: bool) -> None:
    place = Place(0)
    assert not place.behind(0, 100.0, 0.0)
    place.judge(0, 50.0)
    place.stamp_s = 150.0 - delay_s
    assert place.behind(7, 150.0, 50.0) is behind


def test_a_short_delay_is_forgiven_for_as_long() -> None:
    place = Place(0)
    assert not place.behind(0, 100.0, 0.0)
    place.stamp_s = 90.0
    assert not place.behind(5, 100.0, 4.9)
    assert place.behind(5, 100.0, 5.1)
