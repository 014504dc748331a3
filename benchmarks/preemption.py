"""Preemption: what is wasted by whom one chooses. At random, the youngest first, and those that waste least.

Simulated fleets only: two clusters, a storm a day on each. `nice python benchmarks/preemption.py [SEEDS]`, a minute or
two. First on the same states: whenever a storm asks for GPUs, all three choose, and what each choice would discard is
looked up in the simulation. Then on whole fleets with equal seeds, in each of which one of them chooses all along.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from _common import save
from _preemption_fleet import WAYS, Outcome, Storm, run, scenario
from ettwatch_sim.life import Remedy

_DAYS: Final = 14.0
_OURS: Final = "least waste"
_FLEETS: Final[dict[str, tuple[Remedy, ...]]] = {
    "no remedies": (),
    "async checkpoints at their best interval": ("async_checkpoints", "save_interval"),
}


def main(seeds: int) -> None:
    """Run it."""
    begin = time.process_time()
    results: dict[str, Any] = {"data": {"seeds": seeds, "days": _DAYS}}
    limits: dict[str, bool] = {}
    for fleet, remedies in _FLEETS.items():
        runs: dict[str, list[Outcome]] = {way: [] for way in WAYS}
        for seed in range(1, seeds + 1):
            for way in WAYS:
                runs[way].append(run(seed, scenario(_DAYS, remedies), way))
            print(f"{fleet}: {seed} of {seeds}", file=sys.stderr, flush=True)
        states = [[storm for way in WAYS for storm in runs[way][i].storms] for i in range(seeds)]
        results[f"{fleet}: same states"] = same_states(states)
        for way in WAYS:
            results[f"{fleet}: whole fleets, {way}"] = whole(runs[way])
        results[f"{fleet}: whole fleets, least waste against"] = against(runs)
        for way in WAYS:
            if way != _OURS:
                better = _mean(states, way, wasted) > _mean(states, _OURS, wasted)
                limits[f"{fleet}: less than {way}, same states"] = better
    results["cost"] = {"CPU seconds": time.process_time() - begin}
    save("preemption", results, limits)


def wasted(storm: Storm, way: str) -> float:
    """GPU-seconds that a choice wastes in truth: training that is discarded, and the start-up once more."""
    return storm.discarded[way] + storm.recovering[way]


def discarded(storm: Storm, way: str) -> float:
    """The first part of it."""
    return storm.discarded[way]


def _per_gpu(storms: Sequence[Storm], way: str, of: Callable[[Storm, str], float]) -> float:
    """Seconds for each GPU that was asked for."""
    return sum(of(storm, way) for storm in storms) / sum(storm.gpus for storm in storms)


def _mean(states: Sequence[Sequence[Storm]], way: str, of: Callable[[Storm, str], float]) -> float:
    return statistics.fmean(_per_gpu(storms, way, of) for storms in states)


def same_states(states: Sequence[Sequence[Storm]]) -> dict[str, Any]:
    """By way: seconds wasted for each GPU that was asked for; mean, least and most over the seeds."""
    every = [storm for storms in states for storm in storms]
    told: dict[str, Any] = {"choices": len(every), "GPUs asked for, median": statistics.median(s.gpus for s in every)}
    for way in WAYS:
        told[f"{way}: wasted, s a GPU"] = spread([_per_gpu(storms, way, wasted) for storms in states])
        told[f"{way}: training discarded, s a GPU"] = spread([_per_gpu(storms, way, discarded) for storms in states])
        told[f"{way}: freed of asked for"] = sum(s.freed[way] for s in every) / sum(s.gpus for s in every)
    for way in WAYS:
        if way != _OURS:
            told[f"least waste, less than {way} by %"] = spread(
                [100 * (1 - _per_gpu(s, _OURS, wasted) / _per_gpu(s, way, wasted)) for s in states]
            )
            told[f"least waste, share of choices not worse than {way}"] = statistics.fmean(
                wasted(storm, _OURS) <= wasted(storm, way) for storm in every
            )
    return told


def whole(runs: Sequence[Outcome]) -> dict[str, Any]:
    """What came of fleets."""
    return {
        "attempts preempted": spread([run.preempted for run in runs]),
        "GPUs freed of asked for": spread([run.freed / sum(s.gpus for s in run.storms) for run in runs]),
        "training discarded, s a GPU asked for": spread(
            [run.discarded / sum(s.gpus for s in run.storms) for run in runs]
        ),
        "recovering with waits, s a GPU asked for": spread(
            [run.recovering / sum(s.gpus for s in run.storms) for run in runs]
        ),
        "held GPU-h that were lost": spread([(run.held - run.effective) / 3_600 for run in runs]),
        "ETT of held GPU time, %": spread([100 * run.effective / run.held for run in runs]),
    }


def against(runs: dict[str, list[Outcome]]) -> dict[str, Any]:
    """Differences of fleets of one seed: least waste minus another."""
    told = {}
    for way in WAYS:
        if way != _OURS:
            pairs = list(zip(runs[_OURS], runs[way], strict=True))
            told[f"{way}: training discarded, GPU-h"] = spread(
                [(ours.discarded - other.discarded) / 3_600 for ours, other in pairs]
            )
            told[f"{way}: held GPU-h that were lost"] = spread(
                [(ours.held - ours.effective - other.held + other.effective) / 3_600 for ours, other in pairs]
            )
            told[f"{way}: ETT of held GPU time, points"] = spread(
                [100 * (ours.effective / ours.held - other.effective / other.held) for ours, other in pairs]
            )
    return told


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean over the seeds, its standard error, and the least and most of them."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {
        "mean": round(statistics.fmean(values), 3),
        "error": round(error, 3),
        "least": round(min(values), 3),
        "most": round(max(values), 3),
    }


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
