"""The text of an ownership file, read into rules, or into all that is wrong with it."""

from types import MappingProxyType

import yaml

from ettwatch_core.nodes import Problem, compose, entries, line_of, texts_of, unknown
from ettwatch_core.ownership.doubts import doubts
from ettwatch_core.ownership.entry import Teams, read_entry
from ettwatch_core.ownership.owner import Owners, Rule
from ettwatch_core.ownership.problem import OwnersError

__all__ = ["parse_owners"]

_TOP = ("version", "teams", "owners")
_MOST_RULES = 10_000


def parse_owners(text: str, source: str) -> Owners:
    """Read the text of an ownership file; `source` names it in errors.

    Raises OwnersError with all problems.
    """
    problems: list[Problem] = []
    root = compose(text, problems)
    teams: Teams | None = None
    rules: list[Rule] = []
    if not problems:
        teams, rules = _read(root, problems)
    if problems:
        raise OwnersError(source, sorted(set(problems)))
    contacts = MappingProxyType(dict(teams or {}))
    return Owners(source, tuple(rules), contacts, tuple(doubts(rules)))


def _read(root: yaml.Node | None, problems: list[Problem]) -> tuple[Teams | None, list[Rule]]:
    found: dict[str, yaml.Node] = {}
    for name, line, node in entries(root, "the file", problems):
        if name in _TOP:
            found[name] = node
        else:
            problems.append(unknown(name, line, _TOP))
    version = found.get("version")
    if version is not None and not (isinstance(version, yaml.ScalarNode) and version.value == "1"):
        problems.append(Problem(line_of(version), "version must be 1"))
    # Where teams are declared, they are so before the owners are read, wherever they stand in the file.
    teams = _teams(found["teams"], problems) if "teams" in found else None
    rules: list[Rule] = []
    if "owners" in found:
        for stage, line, node in entries(found["owners"], "owners", problems):
            rules += read_entry(stage, line, node, teams, problems)
            if len(rules) > _MOST_RULES:
                problems.append(Problem(line, f"more than {_MOST_RULES:,} rules; name clusters and models less often"))
                break
    if not rules and not problems:
        problems.append(Problem(1, "nothing under the key owners; name at least one component and its team"))
    return teams, rules


def _teams(node: yaml.Node, problems: list[Problem]) -> Teams | None:
    teams: Teams = {}
    for name, line, value in entries(node, "teams", problems):
        contact = None
        for key, at, given in entries(value, f"team {name!r}", problems):
            if key == "contact":
                contact = ", ".join(texts_of(given, f"contact of {name!r}", problems)) or None
            else:
                problems.append(unknown(key, at, ("contact",)))
        if not name.strip() or not name.isprintable():
            problems.append(Problem(line, "the name of a team must be a text that can be printed"))
        teams[name.strip()] = contact
    return teams if isinstance(node, yaml.MappingNode) else None
