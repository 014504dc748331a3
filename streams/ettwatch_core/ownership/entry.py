"""One entry of an ownership file: a stage, its owner, and who owns it in some clusters or for some models."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TypeAlias

import yaml

from ettwatch_core.nodes import Problem, entries, line_of, near, text_of, texts_of, unknown
from ettwatch_core.ownership.owner import Owner, Rule
from ettwatch_schemas import COMPONENTS, EFFECTIVE, STAGES, is_phase

__all__ = ["Teams", "read_entry"]

Teams: TypeAlias = dict[str, str | None]
"""Declared teams, and where each is found."""

_OWNER = ("team", "system", "contact")
_ENTRY = (*_OWNER, "overrides")
_OVERRIDE = ("cluster", "model", *_OWNER)


def read_entry(stage: str, line: int, node: yaml.Node, teams: Teams | None, problems: list[Problem]) -> Iterator[Rule]:
    """Yield the rules of an entry; without `teams` any name is a team. What is wrong goes to `problems`."""
    _check_stage(stage, line, problems)
    before = len(problems)
    fields = _fields(node, f"the owner of {stage!r}", _ENTRY, problems)
    told = _texts(fields, stage, problems)
    if len(problems) == before and "team" not in told:
        if "overrides" not in fields:
            problems.append(Problem(line, f"{stage!r} names no team; add team: NAME"))
        elif "contact" in told:
            problems.append(Problem(line, f"{stage!r} has a contact and no team; add team: NAME, or move the contact"))
    owner = _owner(told, teams, fields, problems)
    if owner is not None:
        yield Rule(stage, None, None, owner, line)
    if "overrides" in fields:
        yield from _overrides(stage, fields["overrides"], told, teams, problems)


def _overrides(
    stage: str, node: yaml.Node, entry: Mapping[str, str], teams: Teams | None, problems: list[Problem]
) -> Iterator[Rule]:
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        reason = f"overrides of {stage!r} must be a list, such as [{{cluster: C, team: T}}]"
        problems.append(Problem(line_of(node), reason))
        return
    seen: dict[tuple[str | None, str | None], int] = {}
    for item in node.value:
        line = line_of(item)
        before = len(problems)
        fields = _fields(item, f"an override of {stage!r}", _OVERRIDE, problems)
        own = _texts(fields, stage, problems)
        told = {name: entry[name] for name in ("team", "system") if name in entry} | own
        # Another team is not found where the entry's team is found.
        if told.get("team") == entry.get("team") and "contact" in entry:
            told.setdefault("contact", entry["contact"])
        clusters = _names("cluster", fields, stage, problems)
        models = _names("model", fields, stage, problems)
        if len(problems) > before:
            continue
        if not {"cluster", "model"} & set(fields):
            reason = f"an override of {stage!r} names neither cluster nor model; add one of them"
            problems.append(Problem(line, reason))
        elif "team" not in told:
            problems.append(Problem(line, f"an override of {stage!r} names no team; add team: NAME"))
        owner = _owner(told, teams, fields, problems)
        for cluster, model in product(clusters, models):
            if (cluster, model) in seen:
                first = seen[cluster, model]
                what = f"{stage!r} is overridden twice for {_where(cluster, model)}"
                problems.append(Problem(line, f"{what}, first in line {first}; keep one of the two"))
            elif owner is not None:
                seen[cluster, model] = line
                yield Rule(stage, cluster, model, owner, line)


def _fields(node: yaml.Node, what: str, known: tuple[str, ...], problems: list[Problem]) -> dict[str, yaml.Node]:
    fields: dict[str, yaml.Node] = {}
    for name, line, value in entries(node, what, problems):
        if name in known:
            fields[name] = value
        else:
            problems.append(unknown(name, line, known))
    return fields


def _texts(fields: Mapping[str, yaml.Node], stage: str, problems: list[Problem]) -> dict[str, str]:
    told: dict[str, str] = {}
    for name in ("team", "system"):
        if name in fields:
            text = text_of(fields[name], f"{name} of {stage!r}", problems)
            if text is not None:
                told[name] = text
    if "contact" in fields:
        contacts = texts_of(fields["contact"], f"contact of {stage!r}", problems)
        if contacts:
            told["contact"] = ", ".join(contacts)
    return told


def _names(kind: str, fields: Mapping[str, yaml.Node], stage: str, problems: list[Problem]) -> list[str] | list[None]:
    return texts_of(fields[kind], f"{kind} of an override of {stage!r}", problems) if kind in fields else [None]


def _owner(
    told: Mapping[str, str], teams: Teams | None, fields: Mapping[str, yaml.Node], problems: list[Problem]
) -> Owner | None:
    team = told.get("team")
    if team is None:
        return None
    if teams is not None and team not in teams:
        if "team" in fields:  # else it is the entry's, where it was told
            reason = f"unknown team {team!r}{near(team, teams)}; correct it, or declare it under teams"
            problems.append(Problem(line_of(fields["team"]), reason))
        return None
    return Owner(team, told.get("system"), told.get("contact") or (teams or {}).get(team))


def _where(cluster: str | None, model: str | None) -> str:
    parts = [f"{kind} {name!r}" for kind, name in (("cluster", cluster), ("model", model)) if name is not None]
    return " and ".join(parts)


def _check_stage(stage: str, line: int, problems: list[Problem]) -> None:
    if stage == EFFECTIVE or is_phase(stage):
        return
    if stage.partition(".")[0] in COMPONENTS:
        reason = f"{stage!r} is no stage name; use lower-case letters, digits, _ and dots"
    else:
        known = [*COMPONENTS, EFFECTIVE, *STAGES]
        reason = f"{stage!r} is under no component{near(stage, known)}; the components are {', '.join(COMPONENTS)}"
    problems.append(Problem(line, reason))
