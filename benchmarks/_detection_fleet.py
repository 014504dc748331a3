"""A fleet as summaries, for the benchmark of the detection: starts, failures and ends of jobs, and a wound in one team.

Each team has its own pace, size, models and troubles. There is more to do on working days and by day, when hardware is
slower to come up as well; start times are lognormal with a standard deviation of the logarithm of at least 0.3 among
like jobs; failures come by chance for each GPU-hour.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np

from ettwatch_sim.facts import Fact, Failure, Hours, JobDone, Start

ZONE: Final = "Europe/Berlin"
WEEKS: Final = 13
HOUR_US: Final = 3_600_000_000
BEGIN: Final = int(datetime(2026, 1, 26, tzinfo=ZoneInfo(ZONE)).timestamp()) * 1_000_000
"""A Monday; the clocks change on 29 March, in the ninth week."""
END: Final = BEGIN + WEEKS * 7 * 24 * HOUR_US
TEAMS: Final = 8
_SPREAD: Final = 0.3


@dataclass(frozen=True, slots=True)
class Wound:
    """What is made worse, from when on.

    Attributes:
        team: In which team.
        since: From when on, in microseconds.
        failures: What its failure rate is multiplied by.
    """

    team: str
    since: int
    failures: float


@dataclass(frozen=True, slots=True)
class _Team:
    name: str
    jobs_a_day: float
    models: tuple[tuple[str, int, float, float], ...]  # name, GPUs, seconds of start-up, hours of training
    failures_a_day: float


def teams(seed: int) -> list[_Team]:
    """Return the teams of a seed: busy ones and quiet ones."""
    rng = np.random.default_rng([seed, 1])
    made = []
    for number in range(TEAMS):
        models = tuple(
            (
                f"m{number}{model}",
                int(2 ** rng.integers(3, 8)),
                float(np.exp(rng.normal(6.2, 0.5))),
                float(np.exp(rng.normal(1.6, 0.4))),
            )
            for model in range(rng.integers(2, 6))
        )
        made.append(_Team(f"team{number}", float(rng.uniform(12, 40)), models, float(rng.uniform(1.5, 4.0))))
    return made


def busy(ts: int) -> float:
    """Return how busy the fleet is at an instant, from 0 to 1."""
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ts)).astimezone(ZoneInfo(ZONE))
    day = 0.35 if local.weekday() >= 5 else 1.0
    return day * (0.35 + 0.65 * float(np.exp(-(((local.hour + local.minute / 60 - 14) / 4.5) ** 2))))


def facts(seed: int, wound: Wound | None = None, only: str | None = None) -> Iterator[Fact]:
    """Yield what is told of a fleet in 13 weeks, team by team.

    Without the wound, and before it, the facts are the same as without: every team has random numbers of its own.

    Args:
        seed: Of the random numbers.
        wound: What is made worse.
        only: Of this team only.
    """
    for number, team in enumerate(teams(seed)):
        if only is None or team.name == only:
            hurt = wound if wound is not None and wound.team == team.name else None
            yield from _of_team(team, np.random.default_rng([seed, 2, number]), [seed, 3, number], hurt)


def _of_team(team: _Team, rng: np.random.Generator, seeds: list[int], wound: Wound | None) -> Iterator[Fact]:
    arrivals = _arrivals(team, rng)
    mean_gpu_hours = float(np.mean([gpus * hours for _, gpus, _, hours in team.models]))
    hazard = team.failures_a_day / (team.jobs_a_day * mean_gpu_hours)
    held = np.zeros((END - BEGIN) // HOUR_US)
    for number, begin in enumerate(arrivals):
        own = np.random.default_rng([*seeds, number])
        for fact in _job(team, f"{team.name}-{number}", begin, hazard, own, wound, held):
            if fact.ts < END:
                yield fact
    for hour, gpu_hours in enumerate(held):
        yield Hours(
            ts=BEGIN + hour * HOUR_US, team=team.name, model="", cluster="", gpu_s={"trainer_init": 3600 * gpu_hours}
        )


def _hold(held: np.ndarray, begin: int, end: int, gpus: int) -> None:
    """Add the GPU-hours of one attempt to the hours in which it held them."""
    edges = np.arange(max(begin - BEGIN, 0) // HOUR_US, (min(end, END) - BEGIN - 1) // HOUR_US + 1) * HOUR_US + BEGIN
    overlap = np.minimum(edges + HOUR_US, end) - np.maximum(edges, begin)
    held[(edges - BEGIN) // HOUR_US] += gpus * overlap / HOUR_US


def _arrivals(team: _Team, rng: np.random.Generator) -> list[int]:
    hours = np.arange(BEGIN, END, HOUR_US)
    weights = np.array([busy(int(ts) + HOUR_US // 2) for ts in hours])
    weights *= team.jobs_a_day * WEEKS * 7 / weights.sum()
    numbers = rng.poisson(weights)
    begun = np.repeat(hours, numbers) + rng.integers(0, HOUR_US, int(numbers.sum()))
    return sorted(int(ts) for ts in begun)


def _job(
    team: _Team, job: str, begin: int, hazard: float, rng: np.random.Generator, wound: Wound | None, held: np.ndarray
) -> Iterator[Fact]:
    model, gpus, usual, hours = team.models[int(rng.integers(len(team.models)))]
    cluster = ("east", "west")[len(model) % 2]
    left = 3600 * hours * float(np.exp(rng.normal(0, 0.5)))
    whole = left
    stages: dict[str, float] = {"scheduling": float(rng.exponential(120))}
    now, attempt, nof = begin + int(stages["scheduling"] * 1e6), 0, 0
    tts, ttr, lost = None, [], 0.0
    while True:
        seconds, parts, hit = _start(usual, now, rng)
        allocated = now
        now += int(seconds * 1e6)
        where: dict[str, Any] = {"team": team.name, "model": model, "cluster": cluster, "job": job, "gpus": gpus}
        host = f"host{int(rng.integers(60)):02d}"
        yield Start(
            ts=now,
            attempt=attempt,
            first=attempt == 0,
            seconds=seconds + lost,
            stages=dict(parts),
            cache_hit=hit,
            host=host,
            **where,
        )
        if attempt == 0:
            tts = seconds
        else:
            ttr.append(seconds + lost)
        for name, part in parts.items():
            stages[name] = stages.get(name, 0.0) + part
        rate = hazard * gpus / 3600
        clock = _until_failure(rng, rate, now, wound)
        if clock >= left:
            break
        now += int(clock * 1e6)
        _hold(held, allocated, now, gpus)
        left -= 0.97 * clock
        stages["wasted_training.rework"] = stages.get("wasted_training.rework", 0.0) + 0.03 * clock
        nof += 1
        yield Failure(
            ts=now,
            attempt=attempt,
            cause=("hardware", "network", "user_code", "unknown")[int(rng.integers(4))],
            gpu_hours_before=gpus * (seconds + clock) / 3600,
            outcome="failed",
            trained=True,
            host=host,
            **where,
        )
        lost = float(rng.exponential(150))
        stages["scheduling"] += lost
        now += int(lost * 1e6)
        attempt += 1
    now += int(left * 1e6)
    stages["shutdown.teardown"] = 300 * float(np.exp(rng.normal(0, 0.4)))
    now += int(stages["shutdown.teardown"] * 1e6)
    _hold(held, allocated, now, gpus)
    stages["effective_training"] = whole
    e2e = sum(stages.values())
    yield JobDone(
        ts=now,
        t0=begin,
        team=team.name,
        model=model,
        cluster=cluster,
        job=job,
        gpus=gpus,
        attempts=attempt + 1,
        outcome="succeeded",
        e2e_s=e2e,
        effective_s=whole,
        tts_s=tts,
        ttr_s=tuple(ttr),
        recovery_s=sum(ttr),
        nof=nof,
        nof_infra=nof,
        nof_preempted=0,
        stages=stages,
        gpu_held_s=gpus * (e2e - stages["scheduling"]),
        gpu_e2e_s=gpus * e2e,
        gpu_effective_s=gpus * whole,
        unsaved_s=stages.get("wasted_training.rework", 0.0),
    )


def _start(usual: float, ts: int, rng: np.random.Generator) -> tuple[float, dict[str, float], bool]:
    """Return the seconds of one start, their parts, and whether the compiled code was at hand."""
    hit = bool(rng.random() < 0.9)
    luck = float(np.exp(rng.normal(0, _SPREAD - 0.02)))
    parts = {
        "hardware_setup": 0.3 * usual * (1 + 0.4 * busy(ts)) * float(np.exp(rng.normal(0, 0.25))),
        "trainer_init.checkpoint_load": 0.2 * usual * float(np.exp(rng.normal(0, 0.25))),
        "trainer_init": 0.35 * usual * float(np.exp(rng.normal(0, 0.15))),
        "pt2_compilation": 0.15 * usual * (1.0 if hit else 2.0) * float(np.exp(rng.normal(0, 0.2))),
    }
    parts = {name: part * luck for name, part in parts.items()}
    return sum(parts.values()), parts, hit


def _until_failure(rng: np.random.Generator, rate: float, now: int, wound: Wound | None) -> float:
    """Return the seconds until the next failure, by a hazard that rises where a wound begins."""
    need = float(rng.exponential(1.0))
    if wound is None:
        return need / rate
    healthy = max(0.0, (wound.since - now) / 1e6)
    if need <= healthy * rate:
        return need / rate
    return healthy + (need - healthy * rate) / (rate * wound.failures)
