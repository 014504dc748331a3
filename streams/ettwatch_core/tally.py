"""Sums of charged time."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ettwatch_core.charge import Piece
from ettwatch_core.spans import Cluster
from ettwatch_schemas import COMPONENTS, EFFECTIVE, component_of

__all__ = ["Tally", "seconds", "tally_of"]


def seconds(micros: int) -> float:
    """Convert microseconds to seconds."""
    return micros / 1_000_000


@dataclass(slots=True)
class Tally:
    """Time by stage, time hidden by phase (µs), and GPU-microseconds."""

    stages: dict[str, int] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)
    gpu_effective: int = 0
    gpu_total: int = 0
    gpu_waited: int = 0

    def copy(self) -> "Tally":
        """Return an independent copy."""
        return Tally(self.stages.copy(), self.hidden.copy(), self.gpu_effective, self.gpu_total, self.gpu_waited)

    def add(self, other: "Tally") -> None:
        """Add another tally."""
        for stage, length in other.stages.items():
            self.stages[stage] = self.stages.get(stage, 0) + length
        for phase, length in other.hidden.items():
            self.hidden[phase] = self.hidden.get(phase, 0) + length
        self.gpu_effective += other.gpu_effective
        self.gpu_total += other.gpu_total
        self.gpu_waited += other.gpu_waited

    def stage_seconds(self) -> dict[str, float]:
        """Return seconds by stage, none that is 0."""
        return {stage: seconds(us) for stage, us in sorted(self.stages.items()) if us}

    def hidden_seconds(self) -> dict[str, float]:
        """Return seconds hidden by phase."""
        return {phase: seconds(us) for phase, us in sorted(self.hidden.items()) if us}

    def component_seconds(self) -> dict[str, float]:
        """Return seconds by component, always all six."""
        sums = dict.fromkeys(COMPONENTS, 0)
        for stage, us in self.stages.items():
            if stage != EFFECTIVE:
                sums[component_of(stage)] += us
        return {component: seconds(us) for component, us in sums.items()}


def tally_of(pieces: Iterable[Piece], clusters: Iterable[Cluster], gpus: int) -> Tally:
    """Sum up charged pieces, and what their phases were hidden."""
    stages: dict[str, int] = {}
    for start, end, stage in pieces:
        if stage in stages:
            stages[stage] += end - start
        else:
            stages[stage] = end - start
    hidden: dict[str, int] = {}
    for c in clusters:
        behind = c.end - c.start - c.charged
        if behind:
            hidden[c.phase] = hidden.get(c.phase, 0) + behind
    tally = Tally(stages, hidden)
    tally.gpu_effective = stages.get(EFFECTIVE, 0) * gpus
    tally.gpu_total = sum(stages.values()) * gpus
    waited = sum(us for stage, us in stages.items() if component_of(stage) == "scheduling")
    tally.gpu_waited = waited * gpus
    return tally
