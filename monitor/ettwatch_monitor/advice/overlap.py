"""Which remedies give back the same time: what two of them take off the same stage of the same job.

Stages that run beside each other hide one another. What a shorter compilation gives back when others run beside it is
tried, with both in place.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from ettwatch_monitor.advice.entry import Overlap
from ettwatch_monitor.advice.remedies import BY_NAME, Remedy
from ettwatch_monitor.advice.replays import Outcome

_EFFECTIVE: Final = "effective_training"
_WASTED: Final = "wasted_training"
_MOST: Final = 0.9
"""From this share of the smaller gain on, one contains the other."""
_SOME: Final = 0.1
"""Below this share, it is not worth a word."""

TRIED: Final = tuple(
    (name, "overlap_startup") for name in ("compile_cache", "compile_cache_per_job", "autotune_budget")
)
"""Remedies of which it is tried what both give back."""

Cuts: TypeAlias = Mapping[tuple[int, str], float]
"""GPU-hours (weighted) that a remedy takes off a stage of a job, by the number of the job."""


def cuts(remedy: Remedy, outcome: Outcome, jobs: Sequence[int]) -> dict[tuple[int, str], float]:
    """Return what comes back by job and stage; what gets worse is left out.

    Of remedies for start-ups and compilation, wasted training is left out, too: that failures come at another place is
    luck, and no two remedies share it.
    """
    found = {}
    aside = (_EFFECTIVE,) if remedy.stage.startswith(_WASTED) else (_EFFECTIVE, _WASTED)
    for i in jobs:
        before, after = outcome.before[i].summary, outcome.after[i].summary
        if before is after:
            continue
        scale = outcome.cases[i].weight * before.gpus / 3600
        for stage, seconds in before.stages.items():
            less = scale * (seconds - after.stages.get(stage, 0.0))
            if less > 0 and not stage.startswith(aside):
                found[i, stage] = less
    return found


def overlaps(
    mine: str, all_: Mapping[str, tuple[float, Cuts]], tried: Mapping[frozenset[str], float]
) -> tuple[Overlap, ...]:
    """Return which remedies give back some of what one gives back, the most first.

    Args:
        mine: The name of the one.
        all_: Gains and cuts of all, by name.
        tried: Gains of two at a time, where that was tried.
    """
    gain, own = all_[mine]
    found = []
    for name, (other_gain, other) in all_.items():
        if name == mine:
            continue
        less, more = (own, other) if len(own) <= len(other) else (other, own)
        least = min(gain, other_gain)
        together = tried.get(frozenset((mine, name)))
        if together is None:
            shared = sum(min(value, more.get(key, 0.0)) for key, value in less.items())
            smaller = own if gain <= other_gain else other
            both = min(least, least * shared / max(sum(smaller.values()), 1e-9))
        else:
            both = min(least, gain + other_gain - together)
        if least <= 0 or both < _SOME * least:
            continue
        how = _how(gain, other_gain, both)
        found.append(Overlap(BY_NAME[name], how, both))
    return tuple(sorted(found, key=lambda each: (-each.gpu_h, each.remedy.name)))


def added(parts: Mapping[str, float], gain: float, gains: Mapping[str, float]) -> tuple[Overlap, ...]:
    """Return overlaps of a remedy for all teams, from those of each team added up.

    Args:
        parts: GPU-hours that both give back, by the name of the other.
        gain: Its gain.
        gains: Gains of all, by name.
    """
    found = [Overlap(BY_NAME[name], _how(gain, gains[name], both), both) for name, both in parts.items()]
    return tuple(sorted(found, key=lambda each: (-each.gpu_h, each.remedy.name)))


def _how(gain: float, other: float, both: float) -> Literal["contained", "contains", "overlaps"]:
    if gain <= other and both >= _MOST * gain:
        return "contained"
    if other < gain and both >= _MOST * other:
        return "contains"
    return "overlaps"
