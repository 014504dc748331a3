"""What is watched: every metric with its unit, which way is worse, and from what size on it matters."""

import math
from dataclasses import dataclass
from typing import Final, Literal

from ettwatch_schemas import COMPONENTS

__all__ = ["METRICS", "Kind", "Metric", "metric_named"]

Kind = Literal["seconds", "share", "rate"]
_LEAST_SHARE: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that is measured.

    Attributes:
        name: Its key in rules, alerts and the benchmark.
        title: What people call it.
        kind: Seconds (compared by ratio), a share from 0 to 1 (compared by difference), or failures per GPU-hour.
        worse: 1 if more is worse, -1 if less is.
        weight: Its part of the false discovery rate. Failures are rare and each tells little, so that they need more
            of it; starts come by the hundred and need less.
        least_ratio: Smaller changes, as a ratio, are not told.
        least_points: Smaller changes of a share, in percentage points, are not told.
        pace: At so many samples a day it spends its part; at more it spends less at each look, because it looks at
            more: what is held is how often it is wrong in a quarter.
        family: Metrics of one family move for one reason: of one scope and onset, they make one alert.
        lasts_days: A change has to last so long before it is told. What waits for hardware goes up and down with queues
            and storms of preemptions, which are over after a day or two, and nobody's change.
        by_owner: Whether it is asked of the owners of components instead of the teams of jobs.
    """

    name: str
    title: str
    kind: Kind
    worse: int
    weight: float
    least_ratio: float
    least_points: float
    pace: float
    family: frozenset[str]
    lasts_days: float = 0.0
    by_owner: bool = False

    def scale(self, value: float) -> float:
        """Return a value on the scale where a change is the same everywhere, larger being worse: log, or log odds."""
        if self.kind == "share":
            share = min(max(value, _LEAST_SHARE), 1.0 - _LEAST_SHARE)
            return self.worse * math.log(share / (1.0 - share))
        return self.worse * math.log(max(value, 1e-3))


_PATIENCE: Final = 3.0
_START: Final = frozenset({"start"})
_RUN: Final = frozenset({"run"})
_BOTH: Final = _START | _RUN
_ALL: Final = _BOTH | {"end", "queue"}
_FAMILIES: Final = {"wasted_training": _RUN, "shutdown": frozenset({"end"}), "scheduling": frozenset({"queue"})}


def _shares() -> list[Metric]:
    made = []
    for component in COMPONENTS:
        family = _FAMILIES.get(component, _START)
        title, lasts = f"share of {component}", _PATIENCE if component == "scheduling" else 0.0
        made.append(Metric(f"share.{component}", title, "share", 1, 0.1, 1.1, 2.0, 25.0, family, lasts))
        made.append(Metric(f"part.{component}", title, "share", 1, 0.1, 1.1, 1.0, 25.0, family, lasts, by_owner=True))
    return made


METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("tts", "time to start (TTS)", "seconds", 1, 3.2, 1.1, 0.0, 40.0, _START),
        Metric("ttr", "time to recover (TTR)", "seconds", 1, 0.3, 1.1, 0.0, 25.0, _BOTH, _PATIENCE),
        Metric("compile", "compile time", "seconds", 1, 0.2, 1.15, 0.0, 25.0, _START),
        Metric("nof", "failure rate (NoF)", "rate", 1, 7.0, 1.3, 0.0, 4.0, _RUN),
        Metric("ett", "effective training time (ETT%)", "share", -1, 0.1, 1.0, 2.0, 25.0, _ALL, _PATIENCE),
        *_shares(),
    )
}
"""Every metric by name. ``share.*`` is of a team's attempts, ``part.*`` of those that an owner of components serves."""


def metric_named(name: str) -> Metric:
    """Return a metric. Raises KeyError."""
    return METRICS[name]
