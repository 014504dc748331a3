"""Injections have their size, place and time, and touch nothing else."""

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

import pytest

from ettwatch_sim import Fact, Failure, JobDone, Start
from ettwatch_sim.life import REMEDIES, Cluster, Injection, Scenario, Team, summaries

DAY = 86_400_000_000
# Much room: where nothing waits, what happens in one place changes nothing in another.
BASE = Scenario(
    days=20,
    clusters=tuple(Cluster(name=name, gpus=8_000, storms_per_week=0, slow_hosts=0) for name in ("c1", "c2")),
    teams=(
        Team(name="a", models=("ctr-small", "retrieval"), jobs_per_day=20, remedies=REMEDIES),
        Team(name="b", models=("ctr-small",), jobs_per_day=10),
    ),
)
ONSET = BASE.begin + 10 * DAY


def run(*injections: Injection) -> list[Fact]:
    return list(summaries(7, BASE.but(injections=injections)))


PLAIN = run()


def starts(facts: list[Fact]) -> list[Start]:
    return [f for f in facts if isinstance(f, Start) and f.team == "a"]


def began(start: Start) -> int:
    return start.ts - int(start.seconds * 1e6)


def pairs(*injections: Injection) -> list[tuple[Start, Start]]:
    """The first starts of all jobs, without and with injections; on which hosts does not matter.

    A start-up that takes longer meets a fault more often, and is missing then.
    """
    plain, changed = (
        {f.job: replace(f, host="") for f in facts if isinstance(f, Start) and f.first}
        for facts in (PLAIN, run(*injections))
    )
    assert len(plain.keys() & changed.keys()) > 0.95 * len(plain)
    return [(plain[job], changed[job]) for job in plain.keys() & changed.keys()]


def failures(facts: list[Fact], choose: Callable[[Failure], bool]) -> list[tuple[int, str, int, str]]:
    return [(f.ts, f.job, f.attempt, f.cause) for f in facts if isinstance(f, Failure) and choose(f)]


def test_a_rise_of_the_start_of_one_team() -> None:
    hit = spared = 0
    for plain, changed in pairs(Injection(name="i", what="stage", factor=1.2, from_day=10, team="a")):
        if plain.team == "a" and began(plain) >= ONSET:
            hit += 1
            if plain.cache_hit == changed.cache_hit:  # (the first to compile may come later)
                assert changed.seconds == pytest.approx(1.2 * plain.seconds, abs=0.01)
        elif plain.ts < ONSET or plain.team == "b":
            spared += 1
            assert changed == plain
    assert hit > 100
    assert spared > 100


def test_one_stage_of_one_model() -> None:
    stage = "trainer_init.get_first_batch_data"
    both = pairs(Injection(name="i", what="stage", stage=stage, factor=3, model="ctr-small"))
    ratios = [changed.stages[stage] / plain.stages[stage] for plain, changed in both if plain.team == "b"]
    assert ratios == pytest.approx([3] * len(ratios), rel=0.01)
    assert all(changed == plain for plain, changed in both if plain.model == "retrieval")


def test_it_ends() -> None:
    hit = []
    for plain, changed in pairs(Injection(name="i", what="stage", factor=2, from_day=5, to_day=8, team="b")):
        if plain.team == "b":
            longer = changed.seconds / plain.seconds
            assert longer == pytest.approx(2 if 5 <= (began(plain) - BASE.begin) / DAY < 8 else 1, abs=0.001)
            hit.append(longer > 1.5)
    assert 0 < sum(hit) < len(hit)


def rate(facts: list[Fact], since: int, **place: str) -> float:
    """Failures for each hour in a loop."""
    failed = [f for f in facts if isinstance(f, Failure) and f.ts >= since]
    hours = sum(f.e2e_s for f in facts if isinstance(f, JobDone) and f.t0 >= since and f.team == place["team"]) / 3_600
    return sum(all(getattr(f, name) == value for name, value in place.items()) for f in failed) / hours


def test_failures_double() -> None:
    facts = run(Injection(name="i", what="failures", factor=2, from_day=10, team="b"))
    assert rate(facts, ONSET, team="b") / rate(PLAIN, ONSET, team="b") == pytest.approx(2, rel=0.35)
    for spared in (lambda f: f.ts < ONSET, lambda f: f.team == "a"):
        assert failures(facts, spared) == failures(PLAIN, spared)


def test_failures_of_one_cause() -> None:
    facts = run(Injection(name="i", what="failures", cause="network", factor=8, team="b"))
    assert rate(facts, 0, team="b", cause="network") > 4 * rate(PLAIN, 0, team="b", cause="network")
    others = ["dependency", "hardware", "storage", "host_memory", "user_code"]
    seen, usual = (sum(rate(each, 0, team="b", cause=c) for c in others) for each in (facts, PLAIN))
    assert seen == pytest.approx(usual, rel=0.25)


def test_caches_are_cold() -> None:
    usual = fmean(bool(s.cache_hit) for s in starts(PLAIN))
    assert usual > 0.7
    for share in (1.0, 0.5):
        facts = run(Injection(name="i", what="cold_caches", factor=share, from_day=10, team="a"))
        hits = fmean(bool(s.cache_hit) for s in starts(facts) if began(s) >= ONSET)
        assert hits == pytest.approx((1 - share) * usual, abs=0.12 * (share < 1))


def test_saves_are_slower() -> None:
    stage = "wasted_training.checkpoint_save"

    def seconds(facts: list[Fact], late: bool) -> float:
        done = [f for f in facts if isinstance(f, JobDone) and f.team == "b" and (f.t0 >= ONSET) == late]
        chosen = [f for f in done if late or f.ts < ONSET]
        return sum(f.stages.get(stage, 0) for f in chosen) / sum(f.effective_s for f in chosen)

    facts = run(Injection(name="i", what="saves", factor=3, from_day=10, team="b"))
    assert seconds(facts, True) == pytest.approx(3 * seconds(PLAIN, True), rel=0.15)
    assert seconds(facts, False) == seconds(PLAIN, False)


def test_queues_are_longer() -> None:
    def waits(facts: list[Fact]) -> dict[str, float]:
        return {f.job: f.stages["scheduling.queue_wait"] for f in facts if isinstance(f, JobDone) and f.attempts == 1}

    usual = waits(PLAIN)
    facts = waits(run(Injection(name="i", what="queue", factor=4, cluster="c1")))
    place = {f.job: f.cluster for f in PLAIN if isinstance(f, JobDone)}
    ratios = {job: facts[job] / usual[job] for job in usual if job in facts}
    for job, ratio in ratios.items():
        assert ratio == pytest.approx(4 if place[job] == "c1" else 1, abs=0.01)


def test_one_host_is_slow_and_named() -> None:
    scenario = BASE.but(clusters=(Cluster(name="c1", gpus=256, storms_per_week=0, slow_hosts=0),), days=8.0)
    injection = Injection(name="i", what="stage", stage="trainer_init", factor=5, host="c1-h0003")
    facts = [f for f in summaries(2, scenario.but(injections=(injection,))) if isinstance(f, Start) and f.first]
    slow, others = ([f for f in facts if (f.host == "c1-h0003") == is_slow] for is_slow in (True, False))

    def part(start: Start) -> float:
        return sum(seconds for stage, seconds in start.stages.items() if stage.startswith("trainer_init"))

    assert len(slow) > 5
    assert fmean(map(part, slow)) > 3 * fmean(map(part, others))


def test_the_truth_names_them() -> None:
    scenario = BASE.but(injections=(Injection(name="i", what="failures", factor=2, from_day=10, to_day=11, team="b"),))
    (injected,) = scenario.injected()
    assert (injected.name, injected.what, injected.factor, injected.team) == ("i", "failures", 2, "b")
    assert (injected.since, injected.until) == (ONSET, ONSET + DAY)
