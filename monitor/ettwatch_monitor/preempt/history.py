"""How long recoveries and start-ups took: of a job itself, of its team and model, of all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["OWN_WEIGHT", "History", "Measured", "Times"]

OWN_WEIGHT: Final = 3
"""The mean of a team counts as much as so many recoveries of the job itself."""


class Times(NamedTuple):
    """Times of one kind: how many, and their sum in seconds."""

    number: int = 0
    total_s: float = 0.0

    def plus(self, other: "Times") -> "Times":
        """Return both together."""
        return Times(self.number + other.number, self.total_s + other.total_s)

    @property
    def mean_s(self) -> float | None:
        """Their mean; None of none."""
        return self.total_s / self.number if self.number else None


class Measured(NamedTuple):
    """An expected time in seconds, None where nobody knows, and what it was made from, for people."""

    seconds: float | None
    source: str


@dataclass(slots=True)
class History:
    """Times of one kind by (team, model)."""

    of: dict[tuple[str, str], Times] = field(default_factory=dict)

    def add(self, team: str, model: str, times: Times) -> None:
        """Add times of a team and model."""
        self.of[team, model] = self.of.get((team, model), Times()).plus(times)

    def expected(self, team: str, model: str, own: Iterable[float]) -> Measured:
        """Return what to expect of a job: its own times, weighed with the nearest mean of others.

        That is the mean of its team and model, else of its team, else of its model, else of all. With few times of its
        own the others count more: as much as `OWN_WEIGHT` of its own.
        """
        mine = list(own)
        others, source = self._others(team, model)
        mean = others.mean_s
        if mean is None:
            return Measured(sum(mine) / len(mine), f"{len(mine)} own") if mine else Measured(None, "")
        told = f"{len(mine)} own, {others.number:,} of {source}" if mine else f"{others.number:,} of {source}"
        return Measured((sum(mine) + OWN_WEIGHT * mean) / (len(mine) + OWN_WEIGHT), told)

    def _others(self, team: str, model: str) -> tuple[Times, str]:
        exact = self.of.get((team, model), Times())
        if exact.number:
            return exact, "team and model"
        for place, name, source in ((0, team, "team"), (1, model, "model")):
            found = _sum({key: times for key, times in self.of.items() if name and key[place] == name})
            if found.number:
                return found, source
        return _sum(self.of), "all"


def _sum(of: Mapping[tuple[str, str], Times]) -> Times:
    """Sum up in one order, so that equal histories give equal sums."""
    total = Times()
    for key in sorted(of):
        total = total.plus(of[key])
    return total
