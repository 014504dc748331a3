"""The profiles: ETT% without and with remedies, as the core finds it in their events; and what each remedy moves."""

from functools import cache
from math import log
from statistics import fmean, median, stdev

import pytest

from ettwatch_schemas import JobSummary
from ettwatch_sim import JobDone, Start
from ettwatch_sim.life import PROFILES, REMEDIES, Remedy, Scenario, alone, best_interval, simulate, summaries
from support.life import fold

# As published for seven models of 8 to 256 GPUs.
WITHOUT, WITH = (59, 85), (80, 93)


@cache
def jobs(name: str, *remedies: Remedy) -> list[JobSummary]:
    # Few reports, for speed: they change no figure but the time between the last of them and a death.
    scenario = alone(name, remedies).but(jobs=10, days=60.0, report_every_s=300.0, ranks=1)
    return [snapshot.summary for snapshot in fold(simulate(1, scenario)).values()]


def ett(summaries: list[JobSummary]) -> float:
    return 100 * sum(s.gpu_effective_s for s in summaries) / sum(s.gpu_e2e_s for s in summaries)


def test_there_are_seven_of_8_to_256_gpus() -> None:
    gpus = sorted(model.gpus for model in PROFILES.values())
    assert (len(gpus), gpus[0], gpus[-1]) == (7, 8, 256)


@pytest.mark.parametrize("name", PROFILES)
def test_ett_comes_out_as_published(name: str) -> None:
    before, after = ett(jobs(name)), ett(jobs(name, *REMEDIES))
    assert WITHOUT[0] <= before <= WITHOUT[1]
    assert WITH[0] <= after <= WITH[1]
    assert after > before + 5


@pytest.mark.parametrize("name", PROFILES)
def test_starts_and_recoveries_are_shorter(name: str) -> None:
    before, after = jobs(name), jobs(name, *REMEDIES)
    assert median(s.tts_s for s in after if s.tts_s) < 0.59 * median(s.tts_s for s in before if s.tts_s)
    recoveries = [[t for s in each for t in s.ttr_s] for each in (before, after)]
    assert 1.8 <= fmean(recoveries[0]) / fmean(recoveries[1]) <= 8.6


@cache
def long(*remedies: Remedy) -> list[JobDone]:
    return [f for f in summaries(3, alone("ctr-large", remedies).but(days=20.0)) if isinstance(f, JobDone)]


def share(done: list[JobDone], stage: str) -> float:
    """Seconds of a stage for each effective one."""
    return sum(s for job in done for name, s in job.stages.items() if name.startswith(stage)) / sum(
        job.effective_s for job in done
    )


# What is left of what each remedy acts on. Tests fail where one does nothing, and where it acts by anything else.
MOVES: dict[Remedy, tuple[str, float, float]] = {
    "communication": ("trainer_init", 0.4, 0.9),
    "overlap": ("trainer_init", 0.1, 0.8),
    "dynamic_shapes": ("pt2_compilation.recompile", 0.02, 0.25),
    "autotune": ("pt2_compilation.autotune", 0.05, 0.35),
    "compile_cache": ("pt2_compilation", 0.05, 0.6),
    "async_checkpoints": ("wasted_training.checkpoint_save", 0.1, 0.35),
    "save_interval": ("wasted_training.rework", 0.3, 0.9),
    "standalone_publishing": ("shutdown", 0.01, 0.1),
    "cheap_recovery": ("scheduling", 0.1, 0.8),
}


@pytest.mark.parametrize("remedy", MOVES)
def test_each_remedy_moves_what_it_acts_on(remedy: Remedy) -> None:
    stage, least, most = MOVES[remedy]
    before, after = long(), long(remedy)
    assert least <= share(after, stage) / share(before, stage) <= most
    if not stage.startswith("shutdown"):
        assert share(after, "shutdown.model_publish") == pytest.approx(
            share(before, "shutdown.model_publish"), rel=0.05
        )


def test_preemption_takes_those_that_lose_least() -> None:
    def lost(*remedies: Remedy) -> float:
        scenario = alone("ctr-large", remedies)
        stormy = scenario.clusters[0].model_copy(update={"gpus": 512, "storms_per_week": 60.0, "storm_share": 0.5})
        done = [f for f in summaries(3, scenario.but(clusters=(stormy,), days=30.0)) if isinstance(f, JobDone)]
        preempted = sum(job.nof_preempted for job in done)
        assert preempted > 50
        return sum(job.unsaved_s for job in done) / sum(job.nof for job in done)

    assert lost("preemption") < 0.95 * lost()


def test_the_interval_of_the_published_curve() -> None:
    assert best_interval(15, 86_400 / 3) == pytest.approx(929.5, abs=0.1)


def test_starts_are_spread_as_in_life() -> None:
    for name in PROFILES:
        facts = summaries(3, alone(name).but(days=8.0, jobs=120))
        times = [log(fact.seconds) for fact in facts if isinstance(fact, Start) and fact.first]
        assert 0.3 <= stdev(times) <= 0.5, name


def test_a_remedy_of_one_team_is_its_own() -> None:
    scenario = alone("ctr-small")
    one, two = scenario.teams[0], scenario.teams[0].model_copy(update={"name": "other", "remedies": REMEDIES})
    both = Scenario(clusters=scenario.clusters, teams=(one, two), days=14)
    done = [fact for fact in summaries(5, both) if isinstance(fact, JobDone)]
    figures = {}
    for team in ("team", "other"):
        figures[team] = sum(j.effective_s for j in done if j.team == team) / sum(
            j.e2e_s for j in done if j.team == team
        )
    assert figures["team"] < 0.85 < figures["other"]
