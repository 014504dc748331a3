"""Rules of ownership, and the one that holds for a stage of a job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ettwatch_core.nodes import Problem

__all__ = ["Owner", "Owners", "Rule"]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who answers for a stage."""

    team: str
    system: str | None = None
    """What the time is spent in."""
    contact: str | None = None
    """Where the team is found; several ways are joined by a comma."""


class Rule(NamedTuple):
    """One rule: the owner of a stage and of what lies under it, perhaps only in one cluster or for one model."""

    stage: str
    cluster: str | None
    model: str | None
    owner: Owner
    line: int
    """Where it stands in the file."""


class _Key(NamedTuple):
    stage: str
    cluster: str | None
    model: str | None


@dataclass(frozen=True, slots=True)
class Owners:
    """The rules of one ownership file.

    Of the rules that fit, the one with the longest dotted prefix counts; of those, the one that names cluster and
    model, then the one that names the cluster, then the one that names the model, then the one that names neither.
    There are no two rules with one prefix, cluster and model, so the order leaves no choice open.
    """

    source: str
    """Where they were read from."""
    rules: tuple[Rule, ...]
    """In the order of the file."""
    teams: Mapping[str, str | None] = field(default_factory=dict)
    """The teams that the file declares, and where each is found; empty where it declares none."""
    doubts: tuple[Problem, ...] = ()
    """What is allowed and yet looks like a mistake."""
    _by_key: Mapping[_Key, Rule] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        by_key = {_Key(rule.stage, rule.cluster, rule.model): rule for rule in self.rules}
        object.__setattr__(self, "_by_key", MappingProxyType(by_key))

    def of(self, stage: str, cluster: str | None = None, model: str | None = None) -> Owner | None:
        """Return the owner of a stage of a job in that cluster and of that model; None where nobody is named."""
        rule = self.rule(stage, cluster, model)
        return None if rule is None else rule.owner

    def rule(self, stage: str, cluster: str | None = None, model: str | None = None) -> Rule | None:
        """Return the rule that holds for a stage of a job; None where there is none."""
        for prefix in _prefixes(stage):
            for where in ((cluster, model), (cluster, None), (None, model), (None, None)):
                rule = self._by_key.get(_Key(prefix, *where))
                if rule is not None:
                    return rule
        return None

    def contact(self, team: str) -> str | None:
        """Return where a team is found, whether it owns jobs or components; None where the file does not say."""
        declared = self.teams.get(team)
        if declared is not None:
            return declared
        return next((rule.owner.contact for rule in self.rules if rule.owner.team == team and rule.owner.contact), None)


def _prefixes(stage: str) -> Iterator[str]:
    while stage:
        yield stage
        stage = stage.rpartition(".")[0]
