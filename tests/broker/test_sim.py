"""The generator of random jobs."""

import tracemalloc
from collections import Counter
from collections.abc import Iterable
from itertools import islice, pairwise

import pytest

from ettwatch_core import JobState, Rules, Verdict, apply, snapshot
from ettwatch_schemas import KINDS, Event, JobSummary, decode_event, encode_event
from ettwatch_sim import IN_ORDER, Delivery, Shape, random_jobs

RULES = Rules()


def fold(events: Iterable[Event]) -> tuple[dict[str, JobSummary], Counter[Verdict]]:
    states: dict[str, JobState] = {}
    verdicts: Counter[Verdict] = Counter()
    for event in events:
        state = states.setdefault(event.job, JobState(event.job))
        verdicts[apply(state, event, RULES)] += 1
    return {job: snapshot(state, RULES).summary for job, state in states.items()}, verdicts


def test_a_seed_says_everything() -> None:
    assert list(random_jobs(5, 10)) == list(random_jobs(5, 10))
    assert list(random_jobs(5, 10)) != list(random_jobs(6, 10))


def test_a_job_is_the_same_in_a_larger_fleet() -> None:
    few, many = ([e for e in random_jobs(5, count, delivery=IN_ORDER) if e.job == "sim-5-3"] for count in (4, 12))
    assert few == many
    assert few


def test_every_kind_several_ranks_and_open_spans() -> None:
    events = list(random_jobs(1, 60))
    assert {event.kind for event in events} == set(KINDS)
    assert {event.rank for event in events} == {0, 1, 2, 3}
    assert {event.attempt for event in events} >= {None, 0, 1, 2, 3}
    kinds = Counter(event.kind for event in random_jobs(1, 60, delivery=IN_ORDER))
    assert 0 < kinds["phase_started"] - kinds["phase_ended"] < kinds["phase_ended"]


def test_every_event_goes_over_the_wire() -> None:
    for event in random_jobs(2, 20):
        assert decode_event(encode_event(event)) == event


def test_in_order_is_by_time_and_interleaved() -> None:
    events = list(random_jobs(1, 40, delivery=IN_ORDER))
    assert all(a.ts <= b.ts for a, b in pairwise(events))
    changes = sum(a.job != b.job for a, b in pairwise(events))
    assert changes > len(events) / 2


def test_delivery_doubles_delays_and_reorders_within_its_limits() -> None:
    events = list(random_jobs(1, 40))
    sound = list(random_jobs(1, 40, delivery=IN_ORDER))
    assert {encode_event(event) for event in events} == {encode_event(event) for event in sound}
    assert 1.02 < len(events) / len(sound) < 1.1
    newest = 0
    behind: list[int] = []
    for event in events:
        newest = max(newest, event.ts)
        behind.append(newest - event.ts)
    most = (Delivery().late_s + Delivery().jitter_s) * 1_000_000
    assert most / 2 < max(behind) <= most
    assert sum(map(bool, behind)) > len(events) / 20


def test_delivery_changes_no_number() -> None:
    sound, _ = fold(random_jobs(4, 40, delivery=IN_ORDER))
    disturbed, verdicts = fold(random_jobs(4, 40))
    assert verdicts[Verdict.DUPLICATE] > 0
    assert verdicts[Verdict.LATE] == 0
    # The version counts what was said twice, with two contents.
    assert [s.model_copy(update={"version": 0}) for s in sound.values()] == [
        disturbed[job].model_copy(update={"version": 0}) for job in sound
    ]


def test_jobs_are_of_many_sorts() -> None:
    summaries, verdicts = fold(random_jobs(1, 150))
    found = summaries.values()
    assert {summary.status for summary in found} >= {"pending", "recovering", "succeeded", "failed", "cancelled"}
    assert {flag for summary in found for flag in summary.flags} >= {
        "rollback",
        "zombie",
        "negative_span",
        "position_reset",
        "inferred_end",
    }
    assert verdicts[Verdict.CONFLICT] > 0
    shares = [summary.ett_pct for summary in found if summary.ett_pct]
    assert 10 < sum(shares) / len(shares) < 90


def test_without_odd_jobs_nothing_is_odd() -> None:
    summaries, verdicts = fold(random_jobs(1, 40, shape=Shape(odd=0)))
    assert verdicts[Verdict.CONFLICT] == 0
    flags = {flag for summary in summaries.values() for flag in summary.flags}
    assert flags <= {"rollback", "zombie", "inferred_end"}


def test_memory_does_not_grow_with_the_number_of_jobs() -> None:
    calm = Shape(loop_s=120, attempts=1)

    def peak(count: int) -> int:
        tracemalloc.start()
        try:
            for _ in random_jobs(7, count, shape=calm, delivery=Delivery(late_s=60)):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(200) < 2 * peak(50)


def test_it_begins_where_it_is_told_and_ends_never_before_it_is_asked() -> None:
    begin = 1_780_000_000_000_000
    first = list(islice(random_jobs(1, 10**9, shape=Shape(begin=begin)), 50))
    assert begin <= min(event.ts for event in first) < begin + 3_600_000_000


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"loop_s": 0.0}, {"odd": 1.5}])
def test_a_shape_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="begin at 1|from 0 to 1"):
        Shape(**wrong)  # type: ignore[arg-type]
