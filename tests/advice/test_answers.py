"""What advice tells adds up, says what overlaps, and can be asked about one job, one stage, one owner."""

import re
from dataclasses import replace
from itertools import combinations

import pytest

from ettwatch_core.ownership import Owners, parse_owners
from ettwatch_monitor.advice import (
    BY_NAME,
    REMEDIES,
    About,
    Advice,
    Change,
    Entry,
    Fleet,
    Replays,
    advise,
    plain_advice,
)
from ettwatch_monitor.advice.advise import NOT_TOGETHER
from ettwatch_monitor.advice.amounts import amount
from ettwatch_monitor.advice.arithmetic import arithmetic
from ettwatch_monitor.advice.entry import Sum
from ettwatch_monitor.advice.life import Piece
from ettwatch_monitor.advice.overlap import cuts, overlaps
from ettwatch_sim.life import Cluster, Team, preset
from support.advice import jobs_of

WEEKS = 0.3
SCALE = 1.75
NONE = Owners("", ())
OWNED = parse_owners(
    "owners: {pt2_compilation: {team: compiler}, hardware_setup: {team: platform}, shutdown: {team: publishing}}", "x"
)
MIXED = preset("fleet").but(
    days=0.3,
    report_every_s=600,
    travel={},
    clusters=(Cluster(name="north", gpus=768, slow_hosts=0.15, slow_factor=2.0, storms_per_week=3),),
    teams=(
        Team(name="maps", models=("retrieval",), jobs_per_day=16),
        Team(name="shop", models=("ctr-small", "ranker-small"), jobs_per_day=20),
    ),
)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """Two teams: of the one some jobs lie partly outside of the range, of the other only a sample was looked at."""
    found = Fleet()
    for i, (job, events) in enumerate(jobs_of(4, MIXED).items()):
        if job.startswith("maps"):
            found.add(job, events, 0.4 if i % 3 else 1.0)
        else:
            found.add(job, events, SCALE, SCALE)
    return found


@pytest.fixture(scope="module")
def told(fleet: Fleet) -> Advice:
    return advise(fleet, OWNED, WEEKS)


def figure(pattern: str, lines: tuple[str, ...]) -> list[float]:
    """The figures in the one line that fits; none where no line does."""
    fits = [match for line in lines if (match := re.search(pattern, line))]
    assert len(fits) <= 1
    return [float(group.replace(",", "")) for group in fits[0].groups()] if fits else []


@pytest.mark.parametrize("name", BY_NAME)
def test_the_arithmetic_that_is_shown_adds_up(told: Advice, name: str) -> None:
    entries = [entry for entry in told.entries if entry.remedy.name == name]
    assert entries or name in ("keep_hosts", "save_on_notice", "save_interval"), "the fleet shows nearly all remedies"
    for entry in entries:
        lines = entry.arithmetic
        lost, left, less = figure(r"lost ([\d.,]+) GPU-h; with it ([\d.,]+): ([-\d.,]+) less", lines)
        assert lost == pytest.approx(entry.before.lost_gpu_h, abs=0.051)
        assert lost - left == pytest.approx(less, abs=1e-6)
        back, weeks, week = figure(r"([\d.,]+) GPU-h in ([\d.,]+) weeks are ([\d.,]+) GPU-h a week", lines)
        faster = figure(r"takes ([\d.,]+) fewer effective", lines) or [0.0]
        slower = figure(r"takes ([\d.,]+) more effective", lines) or [0.0]
        assert less + faster[0] - slower[0] == pytest.approx(back, abs=1e-6)
        assert back == pytest.approx(entry.sum.gpu_h, abs=0.051)
        assert weeks == WEEKS
        assert week == pytest.approx(entry.sum.gpu_h / WEEKS, abs=0.051)
        assert figure(r"([\d.,]+) % of what the team lost", lines)[0] == pytest.approx(100 * back / lost, abs=0.2)
        assert ("partly outside" in " ".join(lines)) == (entry.team == "maps")
        assert ("not all jobs were looked at" in " ".join(lines)) == (entry.team == "shop")


def test_what_comes_back_is_less_that_is_lost_and_training_that_is_faster(fleet: Fleet, told: Advice) -> None:
    replays = Replays(fleet)
    for remedy in REMEDIES:
        outcome = replays.under(remedy.changes)
        for entry in [each for each in told.entries if each.remedy is remedy]:
            jobs = [i for i, case in enumerate(outcome.cases) if case.life.team == entry.team]
            faster = 0.0
            for i in jobs:
                before, after = outcome.before[i], outcome.after[i]
                owed = before.summary.gpu_effective_s * (after.undone - before.undone)
                spent = before.summary.gpu_effective_s - after.summary.gpu_effective_s - owed
                faster += outcome.cases[i].weight * spent / 3600
            assert entry.sum.faster == pytest.approx(faster, abs=1e-6)
            assert entry.sum.less_lost + entry.sum.faster == pytest.approx(entry.sum.gpu_h, abs=1e-6)
    slow = next(each for each in told.entries if each.remedy.name == "replace_stragglers")
    assert slow.sum.faster > 0, "no step waits for a slow host any more"
    assert slow.slow
    assert slow.slow[0].host in slow.title


def test_an_estimated_overlap_is_about_that_of_both_together(fleet: Fleet) -> None:
    replays = Replays(fleet)
    names = ("publish_off_gpus", "compile_cache", "compile_cache_per_job", "autotune_budget")
    jobs = range(len(replays.cases))
    outcomes = {name: replays.under(BY_NAME[name].changes) for name in names}
    gains = {name: sum(outcome.saved(i).gpu_h for i in jobs) for name, outcome in outcomes.items()}
    all_ = {name: (gains[name], cuts(BY_NAME[name], outcome, jobs)) for name, outcome in outcomes.items()}
    for one, other in combinations(names, 2):
        if one == "compile_cache" and other == "compile_cache_per_job":
            both = gains[one]  # the cache of all is that of the job, too
        else:
            union = replays.under((*BY_NAME[one].changes, *BY_NAME[other].changes))
            both = sum(union.saved(i).gpu_h for i in jobs)
        truly = gains[one] + gains[other] - both
        found = {each.remedy.name: each for each in overlaps(one, all_, {})}
        estimated = found[other].gpu_h if other in found else 0.0
        assert estimated == pytest.approx(truly, abs=0.35 * min(gains[one], gains[other])), (one, other)
    least = min(gains["compile_cache"], gains["publish_off_gpus"])
    tried = {frozenset(("compile_cache", "publish_off_gpus")): gains["compile_cache"]}
    (by_trial,) = overlaps("publish_off_gpus", all_, tried)
    assert by_trial.gpu_h == pytest.approx(least)
    assert {each.remedy.name: each.how for each in overlaps("compile_cache", all_, {})}[
        "compile_cache_per_job"
    ] == "contains"
    assert overlaps("compile_cache_per_job", all_, {})[0].how == "contained"
    assert overlaps("publish_off_gpus", all_, {}) == ()


def test_groups_hold_each_entry_once(told: Advice) -> None:
    numbers = [number for group in told.groups for number in group.entries]
    assert sorted(numbers) == list(range(len(told.entries)))
    assert [group.gpu_h for group in told.groups] == sorted((group.gpu_h for group in told.groups), reverse=True)
    for group in told.groups:
        entries = [told.entries[i] for i in group.entries]
        assert {entry.remedy for entry in entries} == {group.remedy}
        assert group.gpu_h == pytest.approx(sum(entry.sum.gpu_h for entry in entries))
        assert group.lost_pct == pytest.approx(100 * group.gpu_h / told.base.lost_gpu_h)


def test_advice_for_one_job_is_of_that_job(fleet: Fleet) -> None:
    job = max(fleet.cases, key=lambda case: case.summary.e2e_s).life.job
    found = advise(fleet, OWNED, WEEKS, about=About(job=job))
    case = next(case for case in fleet.cases if case.life.job == job)
    assert found.base.total_gpu_h == pytest.approx(case.weight * case.summary.gpu_e2e_s / 3600, rel=0.001)
    assert found.entries
    assert {gainer.job for entry in found.entries for gainer in entry.gainers} == {job}
    assert found.together.lost_gpu_h < found.base.lost_gpu_h
    assert all("the job lost" in " ".join(entry.arithmetic) for entry in found.entries)


@pytest.mark.parametrize("stage", ["pt2_compilation.autotune", "shutdown"])
def test_advice_for_a_stage_gives_back_that_stage(fleet: Fleet, told: Advice, stage: str) -> None:
    found = advise(fleet, OWNED, WEEKS, about=About(stage=stage))
    parts = [entry.stage_gpu_h or 0 for entry in found.entries]
    assert parts == sorted(parts, reverse=True)
    assert min(parts) > 0
    assert len(found.entries) < len(told.entries)
    assert found.of_stage is not None
    assert found.of_stage.after < found.of_stage.before
    assert found.base == told.base
    assert found.together.effective_gpu_h / found.together.total_gpu_h < (
        told.together.effective_gpu_h / told.together.total_gpu_h
    ), "all of it is all that is shown"


def test_advice_for_an_owner_is_what_they_can_do(fleet: Fleet) -> None:
    remedies = [remedy for remedy in REMEDIES if remedy.name in ("publish_off_gpus", "compile_cache", "save_on_notice")]
    found = advise(fleet, OWNED, WEEKS, remedies, about=About(owner="publishing"))
    assert {entry.remedy.name for entry in found.entries} == {"publish_off_gpus"}
    back = sum(entry.sum.gpu_h for entry in found.entries)
    assert found.base.total_gpu_h - found.together.total_gpu_h == pytest.approx(back, rel=0.01), "nothing else in it"


def test_what_takes_more_than_it_gives_is_neither_shown_nor_counted_with_all(fleet: Fleet) -> None:
    bad = replace(BY_NAME["save_interval"], changes=(Change(save_interval_s=2.0),))
    alone = advise(fleet, NONE, WEEKS, [bad])
    assert alone.entries == ()
    assert alone.together == alone.base
    good = BY_NAME["async_saves"]
    assert advise(fleet, NONE, WEEKS, [bad, good]).together == advise(fleet, NONE, WEEKS, [good]).together


def test_a_fleet_of_one_small_job_is_advised_in_minutes_and_seconds(fleet: Fleet) -> None:
    """A job of seconds: what it may gain is a share of what it lost, and no week is made up from it."""
    weeks = 1e-4
    small = advise(fleet, NONE, weeks)
    assert small.entries, "a small share of a week hides nothing"
    assert not any(" a week" in line for entry in small.entries for line in entry.arithmetic)
    assert amount(3.45) == "3.5 GPU-h"
    assert amount(0.05) == "3.0 GPU-min"
    assert amount(0.005) == "18.0 GPU-s"
    assert amount(0) == "0.0 GPU-h"
    lines = arithmetic(Sum(0.01, 0.004, 0.006, 0.0, 0.006, 0, 1.0), weeks, "the job")
    assert lines[0] == "replayed as it was, the job lost 36.0 GPU-s; with it 14.4: 21.6 less"
    assert lines[1] == "60.0 % of what the job lost in this time; 21.6 GPU-s in all"


def test_jobs_that_gain_and_words(told: Advice) -> None:
    for entry in told.entries:
        gains = [each.gpu_h for each in entry.gainers]
        assert gains == sorted(gains, reverse=True)
        assert min(gains) > 0
        assert entry.together == (entry.remedy.name not in NOT_TOGETHER)
    plain = plain_advice(told)
    assert isinstance(plain["advice"], list)
    for shown in plain["advice"]:
        assert shown["why_confidence"].startswith(f"Why {shown['confidence']} confidence: ")
        assert shown["title"][0].isupper()
        words = " ".join([shown["title"], shown["why_confidence"], *shown["arithmetic"]])
        assert not re.search(r"\b1 (jobs|times|cases|attempts|hosts|saves|failures)\b", words)
        assert "sqrt" not in shown["title"]
    saves = [entry for entry in told.entries if entry.remedy.name == "save_interval"]
    assert all(re.search(r"about every [\d.]+( to [\d.]+)? min", entry.title) for entry in saves)


def test_an_entry_needs_no_team(fleet: Fleet) -> None:
    jobs = jobs_of(4, MIXED.but(days=0.1))
    found = Fleet()
    for job, events in jobs.items():
        found.add(
            job, [event.model_copy(update={"team": None}) if hasattr(event, "team") else event for event in events]
        )
    entries: tuple[Entry, ...] = advise(found, NONE, WEEKS).entries
    assert entries
    assert {entry.team for entry in entries} == {None}


def test_saves_are_counted_where_they_can_be_put_into_the_background(fleet: Fleet) -> None:
    """One at the end of an attempt holds its GPUs whether or not it blocks: no gain, and no case of the remedy."""
    remedy = BY_NAME["async_saves"]
    lives = [case.life for case in fleet.cases]
    number, attempt = next((i, one) for i, one in enumerate(lives[0].attempts) if one.loop and one.loop.pauses)
    tail = (*attempt.tail, Piece(remedy.stage, 30_000_000, True))
    attempts = [replace(attempt, tail=tail) if i == number else one for i, one in enumerate(lives[0].attempts)]
    more = [replace(lives[0], attempts=type(lives[0].attempts)(attempts)), *lives[1:]]
    shown = figure(r"([\d,]+) saves? blocked", tuple(remedy.shows(fleet, more)))
    assert shown == [remedy.counts(fleet, more)] == [remedy.counts(fleet, lives)]
