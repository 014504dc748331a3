"""Every remedy that the simulator can apply, on each of its models: the gain that is predicted is the gain that comes.

The fleets are of seeds that nobody looked at while advice was made. Fleets are added up until luck (a failure just
before or just after a save weighs a whole interval) accounts for less than `LUCK`; then the prediction must hold within
`WITHIN`. Where the luck stays larger after `MOST` fleets, as the gain is small beside it, as much more is allowed.
"""

import pytest

from ettwatch_monitor.advice import BY_NAME, Change
from ettwatch_sim.life import PROFILES, Cluster, best_interval
from support.advice import Gain, Trial, added, chance, quiet, tried

WITHIN = 0.10
LUCK = 0.03
FIRST = 1_001
LEAST, MOST = 4, 16
DAYS = {
    "ctr-small": 4,
    "ranker-small": 4,
    "retrieval": 4,
    "ctr-large": 6,
    "sequence": 6,
    "ranker-large": 8,
    "foundation": 8,
}
SWITCHES = {
    "publish_off_gpus": "standalone_publishing",
    "compile_cache": "compile_cache",
    "dynamic_shapes": "dynamic_shapes",
    "autotune_budget": "autotune",
    "overlap_startup": "overlap",
    "async_saves": "async_checkpoints",
    "save_interval": "save_interval",
}


def trials(name: str) -> dict[str, Trial]:
    """What is tried on a model."""
    plain, model = quiet(name, DAYS[name]), PROFILES[name]
    found = {
        remedy: Trial(plain, plain.but(remedies=(switch,)), BY_NAME[remedy].changes)
        for remedy, switch in SWITCHES.items()
    }
    every = best_interval(model.stage_s + model.upload_s, 3600 / model.failures_per_hour)
    found["saves at a given interval"] = found["save_interval"]._replace(changes=(Change(save_interval_s=every),))
    # The simulator notices faults in a fifth of the time; the remedy of advice is a limit of a minute.
    cheap, sooner = plain.but(remedies=("cheap_recovery",)), Change(detection=0.2)
    image = Change(stage="hardware_setup.image_pull", factor=0.05, attempts="later")
    found["fast_detection"] = Trial(plain, cheap, (sooner, image))
    found["keep_hosts"] = Trial(plain, cheap, (sooner, *BY_NAME["keep_hosts"].changes), waits=True)
    own = plain.clusters[0]
    slow = Cluster(**{**own.model_dump(), "slow_hosts": 0.1, "slow_factor": 2.0})
    found["replace_stragglers"] = Trial(plain.but(clusters=(slow,)), plain, BY_NAME["replace_stragglers"].changes)
    # With a version for each job, what a cache shares is what a job shares with itself.
    each = plain.but(deploy_days=0.001)
    own_cache = each.but(remedies=("compile_cache",))
    found["compile_cache_per_job"] = Trial(each, own_cache, BY_NAME["compile_cache_per_job"].changes)
    return found


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("model", DAYS)
def test_each_remedy_gives_back_what_was_predicted(model: str) -> None:
    asked = trials(model)
    off: dict[str, tuple[float, float]] = {}
    gains: dict[str, list[Gain]] = {name: [] for name in asked}
    for seed in range(FIRST, FIRST + MOST):
        for name, gain in tried(seed, asked).items():
            gains[name].append(gain)
        if seed - FIRST + 1 < LEAST:
            continue
        for name in [name for name in asked if chance(gains[name]) < LUCK]:
            off[name] = added(gains[name]).ratio - 1, WITHIN
            del asked[name]
        if not asked:
            break
    for name in asked:
        off[name] = added(gains[name]).ratio - 1, WITHIN + 2 * (chance(gains[name]) - LUCK)
    wrong = [f"{name}: {100 * by:+.0f} % of {100 * most:.0f}" for name, (by, most) in off.items() if abs(by) > most]
    assert not wrong, f"{model}: {'; '.join(wrong)}"
