"""A job that is laid out anew without a change is the job that it was."""

from collections import defaultdict
from pathlib import Path

import pytest

from ettwatch_monitor.advice import Change, Fleet, Replays
from ettwatch_monitor.advice.change import Knobs
from ettwatch_monitor.advice.rewrite import rewrite
from ettwatch_schemas import Event, decode_message
from ettwatch_sim import random_jobs
from ettwatch_sim.life import Scenario, preset
from support.advice import observed, quiet

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.jsonl"))
ODD = preset("fleet").but(
    days=0.15, report_every_s=600, cancelled=0.3, silent_deaths=0.6, drain=False, ranks=2, travel={}
)
MENDED = preset("fleet").but(days=0.1, report_every_s=600, remedies="all", travel={})

CHANGES = (
    Change(overlap=True),
    Change(cache="fleet"),
    Change(cache="job"),
    Change(stragglers=True),
    Change(notice=True),
    Change(save_interval_s="best"),
    Change(save_interval_s=30.0),
    Change(save_blocking=0.0),
    Change(detection_s=0.0),
    Change(stage="trainer_init", factor=3.0),
    Change(stage="pt2_compilation", factor=0.0),
    Change(stage="wasted_training.data_stall", factor=0.0),
    Change(stage="wasted_training.data_stall", factor=3.0),
    Change(stage="scheduling", factor=0.0),
    Change(stage="shutdown", factor=0.0),
)


def read(path: Path) -> Fleet:
    jobs: defaultdict[str, list[Event]] = defaultdict(list)
    for line in path.read_bytes().splitlines():
        for event in decode_message(line)[0]:
            jobs[event.job].append(event)
    fleet = Fleet()
    for job, events in jobs.items():
        fleet.add(job, events)
    return fleet


@pytest.mark.parametrize("scenario", [ODD, MENDED], ids=["odd", "mended"])
def test_without_a_change_a_simulated_fleet_is_what_it_was(scenario: Scenario) -> None:
    fleet = observed(5, scenario)
    assert len(fleet.cases) > 10
    replays = Replays(fleet)
    assert not replays.fixed
    for case, (plain, undone) in zip(fleet.cases, replays.plain, strict=True):
        was = case.summary
        assert undone == pytest.approx(0, abs=1e-6)
        assert (plain.status, plain.attempts, plain.nof, plain.tts_s) == (was.status, was.attempts, was.nof, was.tts_s)
        assert plain.e2e_s == pytest.approx(was.e2e_s, abs=1e-6)
        for stage in {*plain.stages, *was.stages}:
            assert plain.stages.get(stage, 0) == pytest.approx(was.stages.get(stage, 0), abs=max(1.0, was.e2e_s / 500))
    assert replays.error_pct() < 0.5


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_without_a_change_the_cases_are_what_they_were(path: Path) -> None:
    fleet = read(path)
    for case in fleet.cases:
        plain, was = fleet.replay(case, ()).summary, case.summary
        assert plain.e2e_s == pytest.approx(was.e2e_s, abs=1e-6)
        assert plain.effective_s == pytest.approx(was.effective_s, rel=0.01, abs=1)
        assert plain.nof == was.nof


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_time_is_conserved_under_every_change(path: Path) -> None:
    fleet = read(path)
    for case in fleet.cases:
        for change in CHANGES:
            then = fleet.replay(case, (change,)).summary
            assert sum(then.stages.values()) == pytest.approx(then.e2e_s, abs=1e-3)


def test_jobs_without_sense_stop_nobody() -> None:
    jobs: defaultdict[str, list[Event]] = defaultdict(list)
    for event in random_jobs(1, 25):
        jobs[event.job].append(event)
    fleet = Fleet()
    for job, events in jobs.items():
        fleet.add(job, events)
    replays = Replays(fleet)
    for change in CHANGES:
        outcome = replays.under((change,))
        assert not replays.fixed.intersection(outcome.touched())


def test_the_worked_example_without_publishing_ends_half_an_hour_sooner() -> None:
    fleet = read(next(path for path in CASES if "worked" in path.name))
    then = fleet.replay(fleet.cases[0], (Change(stage="shutdown.model_publish", factor=0.0),)).summary
    assert then.e2e_s == pytest.approx(6865 - 1800)
    assert then.effective_s == pytest.approx(3118.333, abs=0.01)


def test_a_shorter_compilation_gives_back_what_nothing_else_waits_for() -> None:
    """Of 300 s of compilation in attempt 0 the first batch of data hides 210: 90 s are all that can come back."""
    fleet = read(next(path for path in CASES if "worked" in path.name))
    change = Change(stage="pt2_compilation", factor=0.1, attempts="first")
    then = fleet.replay(fleet.cases[0], (change,)).summary
    assert then.tts_s == pytest.approx(480, abs=0.01)
    assert then.components["pt2_compilation"] == pytest.approx(90, abs=0.1)


def test_a_job_that_needs_longer_than_it_took_fails_on() -> None:
    fleet = observed(2, quiet("ranker-large", 1.5))
    change = Change(stage="wasted_training.evaluation", factor=30.0)
    more = 0.0
    for case in fleet.cases:
        made = rewrite(case.life, Knobs((change,)), fleet)
        drawn, again = fleet.replay(case, (change,)), fleet.replay(case, (change,))
        assert drawn == again, "the same question has the same answer"
        assert sum(drawn.summary.stages.values()) == pytest.approx(drawn.summary.e2e_s, abs=1e-3)
        assert case.life.status != "succeeded" or made.beyond > 0
        more += drawn.summary.e2e_s - (made.now - case.life.t0) / 1_000_000
    assert more > 0
