"""The policy of preemption as a pure function: what it wastes, what it chooses, and its laws."""

import itertools
import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_monitor.preempt import Running, RunningError, rank, waste_of
from ettwatch_monitor.preempt.cover import Cover, Item, cheapest

NOW = 1_790_000_000_000_000
S = 1_000_000


def running(job: str = "job", **fields: Any) -> Running:
    given_ = {"gpus": 8, "started_us": NOW - 7_200 * S, "seen_us": NOW, "recovery_s": 600.0, **fields}
    return Running(job=job, **given_)


JOBS = st.lists(
    st.builds(
        running,
        job=st.from_regex(r"[a-z]{1,8}", fullmatch=True),
        gpus=st.sampled_from([1, 2, 8, 12, 16, 64, 128]),
        state=st.sampled_from(["starting", "training", "ending"]),
        started_us=st.integers(NOW - 86_400 * S, NOW),
        seen_us=st.integers(NOW - 600 * S, NOW + 60 * S),
        unsaved_s=st.floats(0, 10_000),
        recovery_s=st.none() | st.floats(0, 5_000),
        startup_s=st.none() | st.floats(0, 3_000),
        saved_us=st.none() | st.integers(NOW - 7_200 * S, NOW),
        interval_s=st.none() | st.floats(60, 7_200),
        lag_s=st.none() | st.floats(0, 300),
    ),
    max_size=12,
    unique_by=lambda job: job.job,
)
NEED = st.integers(1, 400)


def youngest_first(jobs: list[Running], gpus: int) -> list[str]:
    return _until(sorted(jobs, key=lambda job: (-job.started_us, job.job)), gpus)


def at_random(jobs: list[Running], gpus: int, seed: int) -> list[str]:
    return _until(Random(seed).sample(jobs, len(jobs)), gpus)


def _until(order: list[Running], gpus: int) -> list[str]:
    names = []
    for job in order:
        if gpus <= 0:
            break
        names.append(job.job)
        gpus -= job.gpus
    return names


@given(JOBS, NEED, st.integers(0, 99))
def test_no_rival_wastes_less_on_the_same_state(jobs: list[Running], gpus: int, seed: int) -> None:
    plan = rank(jobs, gpus, NOW)
    waste = {one.job.job: one.gpu_ms for one in plan.ranked}
    assert plan.gpu_ms == sum(one.gpu_ms for one in plan.chosen)
    if not plan.enough:
        assert sum(job.gpus for job in jobs) < gpus
        return
    assert plan.exact
    for rival in (youngest_first(jobs, gpus), at_random(jobs, gpus, seed)):
        assert plan.gpu_ms <= sum(waste[name] for name in rival)


@given(JOBS, NEED)
def test_no_set_at_all_wastes_less_and_of_equals_none_frees_less(jobs: list[Running], gpus: int) -> None:
    jobs = jobs[:8]
    plan = rank(jobs, gpus, NOW)
    sets = [
        (sum(one.gpu_ms for one in chosen), sum(one.job.gpus for one in chosen))
        for size in range(len(jobs) + 1)
        for chosen in itertools.combinations(plan.ranked, size)
    ]
    large = [one for one in sets if one[1] >= gpus]
    assert plan.enough is bool(large)
    if large:
        assert (plan.gpu_ms, plan.freed) == min(large)


@given(JOBS, NEED)
def test_it_frees_enough_or_says_that_it_cannot(jobs: list[Running], gpus: int) -> None:
    plan = rank(jobs, gpus, NOW, patience_s=3_600)
    assert plan.could_free == sum(job.gpus for job in jobs)
    assert plan.enough is (plan.could_free >= gpus)
    assert plan.freed == sum(one.job.gpus for one in plan.chosen)
    assert plan.freed >= gpus if plan.enough else plan.chosen == ()
    if plan.later is not None:
        assert plan.later.freed >= gpus
        assert plan.later.gpu_ms < plan.gpu_ms
        assert 0 < plan.later.wait_s <= 3_600


@given(JOBS, NEED, st.randoms(use_true_random=False))
def test_the_order_of_jobs_makes_no_difference(jobs: list[Running], gpus: int, chance: Random) -> None:
    mixed = jobs.copy()
    chance.shuffle(mixed)
    assert rank(mixed, gpus, NOW, patience_s=900) == rank(jobs, gpus, NOW, patience_s=900)


@given(JOBS, NEED, st.sets(st.integers(0, 11)))
def test_who_is_excluded_is_ranked_and_never_chosen(jobs: list[Running], gpus: int, which: set[int]) -> None:
    names = {job.job for i, job in enumerate(jobs) if i in which}
    plan = rank(jobs, gpus, NOW, keep=names)
    assert plan.kept == names
    assert not names & {one.job.job for one in plan.chosen}
    assert {one.job.job for one in plan.ranked} == {job.job for job in jobs}
    assert plan == rank(jobs, gpus, NOW, keep=lambda job: job.job in names)
    rest = [job for job in jobs if job.job not in names]
    # What is excluded may be all that knows a time to recover, which the others are taken for.
    if all(job.recovery_s is not None for job in jobs):
        assert plan.chosen == rank(rest, gpus, NOW).chosen


@given(JOBS)
def test_ranked_by_what_a_gpu_costs(jobs: list[Running]) -> None:
    ranked = rank(jobs, 1, NOW).ranked
    prices = [(one.gpu_ms / one.job.gpus, one.job.job) for one in ranked]
    assert prices == sorted(prices)


ITEMS = st.lists(
    st.builds(Item, st.integers(1, 40), st.integers(0, 1_000), st.sampled_from("abcd")), min_size=1, max_size=40
)


@given(ITEMS, st.integers(1, 300))
def test_beyond_the_limit_the_bound_holds(items: list[Item], need: int) -> None:
    best, near = cheapest(items, need), cheapest(items, need, most_cells=0)
    if best is None:
        assert near is None
        return
    assert near is not None
    assert best.exact
    assert not near.exact
    assert near.bound <= best.cost <= near.cost
    for cover in (best, near):
        assert sum(items[i].size for i in cover.chosen) == cover.size >= need
        assert sum(items[i].cost for i in cover.chosen) == cover.cost


def test_nothing_is_needed_for_nothing() -> None:
    assert cheapest([Item(1, 1, "a")], 0) == Cover((), 0, 0, True, 0)


def test_a_large_fleet_is_exact_and_quick() -> None:
    chance = Random(1)
    jobs = [
        running(f"j{i:05}", gpus=8 * chance.randint(1, 64), unsaved_s=chance.uniform(0, 3_600)) for i in range(3_000)
    ]
    plan = rank(jobs, 4_096, NOW)
    assert plan.exact
    assert plan.freed >= 4_096


def test_two_that_fit_beat_one_that_is_cheap_for_its_size() -> None:
    jobs = [
        running("large", gpus=64, unsaved_s=100.0, recovery_s=0.0),
        running("small", gpus=8, unsaved_s=200.0, recovery_s=0.0),
        running("medium", gpus=16, unsaved_s=150.0, recovery_s=0.0),
    ]
    plan = rank(jobs, 24, NOW)
    assert [one.job.job for one in plan.ranked] == ["large", "medium", "small"]
    assert [one.job.job for one in plan.chosen] == ["medium", "small"]
    assert plan.gpu_s == 8 * 200 + 16 * 150


def test_what_training_wastes() -> None:
    waste = waste_of(running(unsaved_s=900.0, seen_us=NOW - 30 * S), NOW)
    assert (waste.lost_s, waste.recovery_s) == (930.0, 600.0)
    assert waste.gpu_s == 8 * 1_530
    assert waste.wait_s is waste.after_gpu_s is None


def test_what_a_start_up_wastes() -> None:
    """A start-up of 500 s it needs anyway: what it has done of it is lost, and only the longer part of recovering."""
    young = running(state="starting", started_us=NOW - 100 * S, startup_s=500.0)
    old = running(state="starting", started_us=NOW - 900 * S, startup_s=500.0)
    strange = running(state="starting", started_us=NOW - 100 * S, startup_s=None)
    assert waste_of(young, NOW).gpu_s == 8 * (100 + 100)
    assert waste_of(old, NOW).gpu_s == 8 * (500 + 100)
    assert waste_of(strange, NOW).gpu_s == 8 * (100 + 600)


def test_when_waiting_is_cheaper() -> None:
    soon = running("soon", gpus=16, unsaved_s=1_700.0, saved_us=NOW - 1_700 * S, interval_s=1_800.0, lag_s=20.0)
    other = running("other", gpus=16, unsaved_s=1_000.0)
    waste = waste_of(soon, NOW)
    assert (waste.wait_s, waste.after_gpu_s) == (100.0, 16 * 620.0)
    plan = rank([soon, other], 16, NOW, patience_s=600)
    assert [one.job.job for one in plan.chosen] == ["other"]
    assert plan.later is not None
    assert [one.job.job for one in plan.later.chosen] == ["soon"]
    assert (plan.later.wait_s, plan.later.gpu_s) == (100.0, 16 * 620.0)
    assert rank([soon, other], 16, NOW, patience_s=99).later is None
    assert rank([soon, other], 16, NOW).later is None
    both = rank([soon, other], 32, NOW, patience_s=600).later
    assert both is not None
    assert both.waits_s == (0.0, 100.0)


def test_nobody_waits_for_a_checkpoint_that_is_overdue_or_saves_nothing() -> None:
    late = running(unsaved_s=1_900.0, saved_us=NOW - 1_900 * S, interval_s=1_800.0, lag_s=20.0)
    fresh = running(unsaved_s=5.0, saved_us=NOW - 5 * S, interval_s=1_800.0, lag_s=20.0)
    for job in (late, fresh):
        assert rank([job], 8, NOW, patience_s=36_000).later is None
    assert waste_of(late, NOW).wait_s is None


def test_an_unknown_recovery_is_the_longest_of_the_others() -> None:
    jobs = [running("a", recovery_s=None), running("b", recovery_s=900.0), running("c", recovery_s=300.0)]
    assert {one.job.job: one.recovery_s for one in rank(jobs, 8, NOW).ranked} == {"a": 900, "b": 900, "c": 300}
    assert rank(jobs[:1], 8, NOW).ranked[0].recovery_s == 1_800


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"gpus": 0}, "gpus"),
        ({"gpus": 8.0}, "gpus"),
        ({"gpus": True}, "gpus"),
        ({"job": ""}, "name"),
        ({"unsaved_s": -1.0}, "unsaved_s"),
        ({"unsaved_s": math.nan}, "unsaved_s"),
        ({"recovery_s": math.inf}, "recovery_s"),
        ({"interval_s": -0.1}, "interval_s"),
        ({"lag_s": 1e30}, "lag_s"),
        ({"state": "over"}, "state"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(RunningError, match=word):
        running(**fields)


@pytest.mark.parametrize("gpus", [0, -8, True, 1.5])
def test_a_need_that_makes_no_sense_is_refused(gpus: Any) -> None:
    with pytest.raises(RunningError, match="GPUs"):
        rank([running()], gpus, NOW)


def test_one_name_twice_is_refused() -> None:
    with pytest.raises(RunningError, match="twice"):
        rank([running("a"), running("a")], 8, NOW)


def test_nothing_runs() -> None:
    plan = rank([], 8, NOW)
    assert not plan.enough
    assert plan.could_free == 0
