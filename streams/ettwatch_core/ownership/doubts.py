"""What an ownership file may say, and yet is likely to be a mistake."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ettwatch_core.nodes import Problem
from ettwatch_core.ownership.owner import Rule

__all__ = ["doubts"]


def doubts(rules: Sequence[Rule]) -> list[Problem]:
    """Return them by line."""
    by_stage: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_stage[rule.stage].append(rule)
    found = [doubt for of_stage in by_stage.values() for doubt in (*_overlaps(of_stage), *_idle(of_stage))]
    return sorted({*found, *_systems(rules), *_spellings(rules)})


def _overlaps(rules: Sequence[Rule]) -> Iterator[Problem]:
    """Yield overrides by cluster and by model that both fit a job and name different owners."""
    exact = {(rule.cluster, rule.model) for rule in rules}
    by_model = [rule for rule in rules if rule.cluster is None and rule.model is not None]
    for one in rules:
        if one.cluster is None or one.model is not None:
            continue
        for other in by_model:
            if other.owner != one.owner and (one.cluster, other.model) not in exact:
                both = f"cluster {one.cluster!r} (line {one.line}) and model {other.model!r} (line {other.line})"
                yield Problem(
                    max(one.line, other.line),
                    f"{both} overlap: {one.stage!r} of a job with both goes to {one.owner.team!r}, as the cluster "
                    "counts first; to say so, or to change it, add an override with both",
                )
                break  # one for each cluster is enough to see it


def _idle(rules: Sequence[Rule]) -> Iterator[Problem]:
    """Yield overrides that change nothing, in an entry without others that they could be an exception from."""
    base = next((rule for rule in rules if rule.cluster is None and rule.model is None), None)
    for rule in rules:
        if base is None or rule is base or rule.owner != base.owner:
            continue
        if rule.cluster is None or rule.model is None or len(rules) == 2:
            where = " and ".join(repr(name) for name in (rule.cluster, rule.model) if name is not None)
            yield Problem(
                rule.line, f"the override of {rule.stage!r} for {where} names the owner of line {base.line}; remove it"
            )


def _systems(rules: Sequence[Rule]) -> Iterator[Problem]:
    """Yield systems that two teams own, overrides aside."""
    first: dict[str, Rule] = {}
    for rule in rules:
        system = rule.owner.system
        if system is None or rule.cluster is not None or rule.model is not None:
            continue
        before = first.setdefault(system, rule)
        if before.owner.team != rule.owner.team:
            yield Problem(
                rule.line,
                f"system {system!r} belongs to team {rule.owner.team!r} here and to team {before.owner.team!r} in line "
                f"{before.line}; name one team, or give one of the two another system",
            )


def _spellings(rules: Sequence[Rule]) -> Iterator[Problem]:
    """Yield names of teams that differ in letter case and space only."""
    first: dict[str, Rule] = {}
    for rule in rules:
        team = rule.owner.team
        before = first.setdefault("".join(team.split()).casefold(), rule)
        if before.owner.team != team:
            yield Problem(
                rule.line, f"team {team!r} is spelt {before.owner.team!r} in line {before.line}; spell it in one way"
            )
