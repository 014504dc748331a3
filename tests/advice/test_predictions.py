"""What advice predicts of a remedy, from events alone, comes true when its mechanism is switched on."""

import pytest

from ettwatch_monitor.advice import BY_NAME, Change, Fleet
from ettwatch_sim.life import PROFILES, Cluster, Remedy, best_interval
from support.advice import gain, jobs_of, observed, pooled, quiet

MODEL = "retrieval"
DAYS = 1.5
SEED = 1


@pytest.fixture(scope="module")
def before() -> Fleet:
    return observed(SEED, quiet(MODEL, DAYS))


@pytest.mark.parametrize(
    ("remedy", "name"),
    [
        ("standalone_publishing", "publish_off_gpus"),
        ("compile_cache", "compile_cache"),
        ("dynamic_shapes", "dynamic_shapes"),
        ("autotune", "autotune_budget"),
        ("overlap", "overlap_startup"),
    ],
)
def test_a_remedy_gives_back_what_was_predicted(before: Fleet, remedy: Remedy, name: str) -> None:
    after = observed(SEED, quiet(MODEL, DAYS, remedies=(remedy,)))
    found = gain(before, after, BY_NAME[name].changes)
    assert found.measured > 0
    assert found.ratio == pytest.approx(1, abs=0.1)


def test_hangs_that_are_ended_sooner() -> None:
    slow, fast = 3_600.0, 120.0
    model = PROFILES[MODEL].model_copy(update={"name": "hanging", "gpu_mtbf_h": 150.0, "job_mtbf_h": 1e6})
    team = quiet(MODEL, DAYS).teams[0].model_copy(update={"models": ("hanging",)})
    scenario = quiet(MODEL, DAYS, models=(model,), teams=(team,))
    before = observed(SEED, scenario.but(hang_timeout_s=slow))
    after = observed(SEED, scenario.but(hang_timeout_s=fast))
    found = gain(before, after, (Change(detection=fast / slow, causes=("timeout",)),))
    assert found.measured > 0
    assert found.ratio == pytest.approx(1, abs=0.1)


def test_other_saves_of_jobs_that_fail_often() -> None:
    model = PROFILES[MODEL].model_copy(
        update={"name": "frail", "gpu_mtbf_h": 150.0, "job_mtbf_h": 1e6, "stage_s": 5.0, "upload_s": 20.0}
    )
    team = quiet(MODEL, DAYS).teams[0].model_copy(update={"models": ("frail",)})
    scenario = quiet(MODEL, DAYS, models=(model,), teams=(team,))
    before = observed(SEED, scenario)
    every = best_interval(25, 3600 / model.failures_per_hour)
    found = gain(before, observed(SEED, scenario.but(remedies=("save_interval",))), (Change(save_interval_s=every),))
    assert found.ratio == pytest.approx(1, abs=0.1)


def test_a_save_within_which_the_job_failed_comes_to_its_end_where_it_begins_sooner() -> None:
    scenario, job = quiet(MODEL, 4), "team-retrieval-s6-49"
    before, after = Fleet(), Fleet()
    before.add(job, jobs_of(6, scenario)[job])
    after.add(job, jobs_of(6, scenario.but(remedies=("async_checkpoints",)))[job])
    found = gain(before, after, BY_NAME["async_saves"].changes)
    assert found.measured > 20, "it is the save that makes the difference: 40 minutes on 32 GPUs"
    assert found.ratio == pytest.approx(1, abs=0.1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("remedy", "changes"),
    [
        ("async_checkpoints", BY_NAME["async_saves"].changes),
        ("save_interval", BY_NAME["save_interval"].changes),
        (
            "cheap_recovery",
            (Change(detection=0.2), Change(stage="hardware_setup.image_pull", factor=0.05, attempts="later")),
        ),
    ],
)
def test_what_hangs_on_few_failures_comes_true_over_several_fleets(remedy: Remedy, changes: tuple[Change, ...]) -> None:
    scenario = quiet(MODEL, 4)
    found = pooled(range(1, 5), scenario, scenario.but(remedies=(remedy,)), changes)
    assert found.measured > 0
    assert found.ratio == pytest.approx(1, abs=0.1)


def test_hosts_that_keep_nobody_waiting() -> None:
    own = quiet(MODEL, DAYS).clusters[0]
    slow = Cluster(**{**own.model_dump(), "slow_hosts": 0.1, "slow_factor": 2.0})
    before = observed(SEED, quiet(MODEL, DAYS, clusters=(slow,)))
    after = observed(SEED, quiet(MODEL, DAYS))
    found = gain(before, after, BY_NAME["replace_stragglers"].changes)
    assert found.measured > 0
    assert found.ratio == pytest.approx(1, abs=0.2)
