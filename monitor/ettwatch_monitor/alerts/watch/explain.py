"""What explains a shift: the stages, models, clusters, teams, hosts or cache misses that most of it comes from."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ettwatch_monitor.alerts.detect import Failed, Metric, Sample
from ettwatch_schemas import EFFECTIVE

__all__ = ["Part", "explain_rate", "explain_times"]

_MOST: Final = 0.25
"""What explains less than this of the whole is not told."""
_MARKED: Final = 1.3
"""A model or a host is told if it explains so many times more than its share of the samples."""
_FEW: Final = 3
_CAP: Final = 0.98


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that explains a part of a shift.

    Attributes:
        kind: `stage`, `cache`, `model`, `cluster`, `team`, `host` or `cause`.
        name: Which.
        share: The part of the shift that it explains, 1 being all of it.
        before: Its figure before: mean seconds of a stage, miss rate of the cache, and so on; None where it has none.
        after: The same after.
        number: Samples or failures after.
    """

    kind: str
    name: str
    share: float
    before: float | None
    after: float | None
    number: int


def explain_times(metric: Metric, before: Sequence[Sample], after: Sequence[Sample]) -> list[Part]:
    """Return what explains the shift of a measure, the largest parts of each kind first.

    Stages share out the difference of the means, with the mix of jobs that came after. Of models, clusters, teams and
    hosts each has the sum over its samples of what they lie above the usual level of their kind; one is told that has
    more of it than of the samples.
    """
    if not before or not after:
        return []
    parts = _stages(metric, before, after)
    parts += _caches(before, after)
    usual = _usual(metric, before)
    lift = [metric.scale(sample.value) - usual.get(_kind(sample), usual[None]) for sample in after]
    for kind, of in _DIMENSIONS:
        parts += _concentrated(kind, [(of(sample), value) for sample, value in zip(after, lift, strict=True)])
    return parts


def explain_rate(
    before: Sequence[Failed], after: Sequence[Failed], held_before: float, held_after: float
) -> list[Part]:
    """Return what explains the shift of a failure rate: causes, models, clusters, teams, hosts with more than before.

    Each is measured by its failures above what the GPU-hours held since would have brought.
    """
    if held_before <= 0 or not after:
        return []
    growth = held_after / held_before
    excess = len(after) - growth * len(before)
    if excess <= 0:
        return []
    parts = []
    of_failure: list[tuple[str, Callable[[Failed], str | None]]] = [
        ("cause", lambda failure: failure.cause),
        *((kind, of) for kind, of in _DIMENSIONS),
    ]
    for kind, of in of_failure:
        seen, awaited = _counts(of, after), _counts(of, before)
        for name, number in seen.items():
            share = (number - growth * awaited.get(name, 0)) / excess
            if share >= _MOST and number >= _FEW and len(seen.keys() | awaited.keys()) > 1:
                parts.append(Part(kind, name, share, float(awaited.get(name, 0)) * growth, float(number), number))
    return sorted(parts, key=lambda part: -part.share)


def _counts(of: "Callable[[Failed], str | None]", failures: Sequence[Failed]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for failure in failures:
        name = of(failure)
        if name:
            counts[name] += 1
    return dict(counts)


_DIMENSIONS: Final[tuple[tuple[str, Callable[[Sample | Failed], str | None]], ...]] = (
    ("model", lambda one: one.model),
    ("cluster", lambda one: one.cluster),
    ("team", lambda one: one.team),
    ("host", lambda one: one.host),
)


def _kind(sample: Sample) -> tuple[str, str, str]:
    return sample.team, sample.model, sample.cluster


def _usual(metric: Metric, before: Sequence[Sample]) -> dict[tuple[str, str, str] | None, float]:
    """Return the usual level of each kind of job, and of all under None."""
    by_kind: dict[tuple[str, str, str] | None, list[float]] = defaultdict(list)
    for sample in before:
        value = metric.scale(sample.value)
        by_kind[_kind(sample)].append(value)
        by_kind[None].append(value)
    return {kind: float(np.median(values)) for kind, values in by_kind.items()}


def _weights(before: Sequence[Sample], after: Sequence[Sample]) -> list[float]:
    """Return how much each sample before counts, so that the kinds are mixed as after."""
    mine: dict[object, int] = defaultdict(int)
    theirs: dict[object, int] = defaultdict(int)
    for sample in before:
        mine[_kind(sample)] += 1
    for sample in after:
        theirs[_kind(sample)] += 1
    weights = [theirs[_kind(sample)] / mine[_kind(sample)] for sample in before]
    return weights if sum(weights) else [1.0] * len(before)


def _stages(metric: Metric, before: Sequence[Sample], after: Sequence[Sample]) -> list[Part]:
    names = sorted({name for sample in (*before, *after) for name in sample.stages if _counts_for(metric, name)})
    if not names:
        return []
    weights = _weights(before, after)
    change: dict[str, tuple[float, float]] = {}
    for name in names:
        low = np.array([_part(metric, sample, name) for sample in before])
        high = np.array([_part(metric, sample, name) for sample in after])
        # One start of a day must not name its stage as what made all of them slower.
        cap = float(np.quantile(np.concatenate([low, high]), _CAP)) or float("inf")
        change[name] = (
            float(np.average(np.minimum(low, cap), weights=weights)),
            float(np.mean(np.minimum(high, cap))),
        )
    worse = {name: high - low for name, (low, high) in change.items()}
    whole = sum(worse.values())
    if whole <= 0:
        return []
    told = [
        Part("stage", name, worse[name] / whole, *change[name], len(after))
        for name in names
        if worse[name] / whole >= _MOST
    ]
    return sorted(told, key=lambda part: -part.share)


def _counts_for(metric: Metric, stage: str) -> bool:
    """Whether a stage is part of what is measured: of a component its own, of the rest all that is lost."""
    head, _, component = metric.name.partition(".")
    if head in ("share", "part"):
        return stage == component or stage.startswith(f"{component}.")
    if metric.name == "compile":
        return stage.startswith("pt2_compilation")
    return stage != EFFECTIVE


def _part(metric: Metric, sample: Sample, name: str) -> float:
    value = sample.stages.get(name, 0.0)
    if metric.kind != "share":
        return value
    return value / max(sum(sample.stages.values()), 1e-9)


def _caches(before: Sequence[Sample], after: Sequence[Sample]) -> list[Part]:
    low = [sample for sample in before if sample.cache_hit is not None]
    high = [sample for sample in after if sample.cache_hit is not None]
    hits = [sample.value for sample in (*low, *high) if sample.cache_hit]
    misses = [sample.value for sample in (*low, *high) if not sample.cache_hit]
    if len(low) < _FEW or len(high) < _FEW or len(hits) < _FEW or len(misses) < _FEW:
        return []
    was = sum(not sample.cache_hit for sample in low) / len(low)
    now = sum(not sample.cache_hit for sample in high) / len(high)
    whole = float(np.mean([sample.value for sample in high])) - float(np.mean([sample.value for sample in low]))
    if whole <= 0 or now <= was:
        return []
    share = (now - was) * (float(np.mean(misses)) - float(np.mean(hits))) / whole
    return [Part("cache", "misses of the compile cache", share, was, now, len(high))] if share >= _MOST else []


def _concentrated(kind: str, lifted: Sequence[tuple[str | None, float]]) -> list[Part]:
    """Return the names that have much more of the shift than of the samples."""
    sums: Mapping[str, list[float]] = defaultdict(list)
    for name, value in lifted:
        if name:
            sums[name].append(value)
    whole = sum(value for _, value in lifted)
    if whole <= 0 or len(sums) < 2:
        return []
    told = []
    for name, values in sums.items():
        share = sum(values) / whole
        if len(values) >= _FEW and share >= _MOST and share >= _MARKED * len(values) / len(lifted):
            told.append(Part(kind, name, share, None, float(np.exp(np.median(values))), len(values)))
    return sorted(told, key=lambda part: -part.share)
