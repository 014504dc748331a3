"""Which team owns a second: the ownership file, read, checked line by line, and asked by stage.

version: 1
owners:
  trainer_init: {system: trainer start-up, team: trainer, contact: "#trainer"}
  trainer_init.checkpoint_load: {system: checkpointing, team: storage}
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import yaml

from ettwatch_schemas import COMPONENTS, EFFECTIVE, STAGES, is_phase

__all__ = ["Owner", "Owners", "OwnersError", "Problem", "find_owners", "load_owners", "parse_owners"]

_FIELDS = ("system", "team", "contact")
_TOP = ("version", "owners")
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Owner:
    """Who answers for a stage."""

    team: str
    system: str | None = None
    contact: str | None = None


class Problem(NamedTuple):
    """What is wrong in one line of an ownership file."""

    line: int
    reason: str


class OwnersError(ValueError):
    """An ownership file is wrong; one line of text for each problem, each with file and line number."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        super().__init__("\n".join(f"{source}:{line}: {reason}" for line, reason in problems))
        self.source = source
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Owners:
    """Owners by component or stage, and where they were read from."""

    source: str
    by_prefix: Mapping[str, Owner]

    def of(self, stage: str) -> Owner | None:
        """The owner of a stage: that of its longest dotted prefix; None where nobody is named."""
        prefix = stage
        while prefix:
            owner = self.by_prefix.get(prefix)
            if owner is not None:
                return owner
            prefix = prefix.rpartition(".")[0]
        return None


def find_owners(own: Path) -> Owners:
    """Read `$ETTWATCH_OWNERS`, else `own` (of the data folder) where it exists, else the default.

    Raises OwnersError where the file is wrong, OSError where `$ETTWATCH_OWNERS` cannot be read.
    """
    named = os.environ.get("ETTWATCH_OWNERS")
    if named:
        return load_owners(Path(named))
    if own.is_file():
        return load_owners(own)
    text = files("ettwatch_app").joinpath("owners.yaml").read_text("utf-8")
    return parse_owners(text, "the built-in owners")


def load_owners(path: Path) -> Owners:
    """Read one ownership file. Raises OwnersError or OSError."""
    raw = path.read_bytes()
    if len(raw) > _MOST_BYTES:
        raise OwnersError(str(path), [Problem(1, f"the file has {len(raw):,} bytes; at most {_MOST_BYTES:,} are read")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise OwnersError(str(path), [Problem(line, "not UTF-8; save the file as UTF-8")]) from None
    return parse_owners(text, str(path))


def parse_owners(text: str, source: str) -> Owners:
    """Read the text of an ownership file; `source` names it in errors.

    Raises OwnersError with all problems.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise OwnersError(source, [Problem(line, f"not YAML: {error.problem or error.context}")]) from None
    except yaml.YAMLError as error:
        raise OwnersError(source, [Problem(1, f"not YAML: {str(error).splitlines()[0]}")]) from None
    problems: list[Problem] = []
    owners: dict[str, Owner] = {}
    for name, _, node in _entries(root, "the file", problems):
        if name not in _TOP:
            problems.append(
                Problem(_line(node), f"unknown key {name!r}{_near(name, _TOP)}; the keys are version, owners")
            )
        elif name == "version":
            if not isinstance(node, yaml.ScalarNode) or node.value != "1":
                problems.append(Problem(_line(node), "version must be 1"))
        else:
            for stage, line, value in _entries(node, "owners", problems):
                _check_stage(stage, line, problems)
                owner = _owner(stage, line, value, problems)
                if owner is not None:
                    owners[stage] = owner
    if not owners and not problems:
        problems.append(Problem(1, "nothing under the key owners; name at least one component and its team"))
    if problems:
        raise OwnersError(source, sorted(problems))
    return Owners(source, MappingProxyType(owners))


def _entries(node: yaml.Node | None, what: str, problems: list[Problem]) -> Iterator[tuple[str, int, yaml.Node]]:
    """Yield (key, line, value) of a mapping; anything else, and a key told twice, is a problem."""
    if not isinstance(node, yaml.MappingNode):
        problems.append(Problem(_line(node), f"{what} must be a mapping of keys to values"))
        return
    seen: dict[str, int] = {}
    for key, value in node.value:
        line = _line(key)
        if not isinstance(key, yaml.ScalarNode):
            problems.append(Problem(line, f"a key of {what} must be a plain text"))
            continue
        if key.value in seen:
            problems.append(Problem(line, f"{key.value!r} stands twice, first in line {seen[key.value]}"))
            continue
        seen[key.value] = line
        yield key.value, line, value


def _check_stage(stage: str, line: int, problems: list[Problem]) -> None:
    if stage == EFFECTIVE or is_phase(stage):
        return
    known = [*COMPONENTS, EFFECTIVE, *STAGES]
    head = stage.partition(".")[0]
    if head in COMPONENTS:
        reason = f"{stage!r} is no stage name; use lower-case letters, digits, _ and dots"
    else:
        components = ", ".join(COMPONENTS)
        reason = f"{stage!r} is under no component{_near(stage, known)}; the components are {components}"
    problems.append(Problem(line, reason))


def _owner(stage: str, line: int, node: yaml.Node, problems: list[Problem]) -> Owner | None:
    values: dict[str, str] = {}
    before = len(problems)
    for name, at, value in _entries(node, f"the owner of {stage!r}", problems):
        if name not in _FIELDS:
            problems.append(
                Problem(at, f"unknown key {name!r}{_near(name, _FIELDS)}; the keys are {', '.join(_FIELDS)}")
            )
        elif not isinstance(value, yaml.ScalarNode) or not value.value.strip():
            problems.append(Problem(at, f"{name} of {stage!r} must be a text that is not empty"))
        else:
            values[name] = value.value.strip()
    if len(problems) > before:
        return None
    if "team" not in values:
        problems.append(Problem(line, f"{stage!r} names no team; add team: NAME"))
        return None
    return Owner(values["team"], values.get("system"), values.get("contact"))


def _near(name: str, known: "list[str] | tuple[str, ...]") -> str:
    close = get_close_matches(name, known, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _line(node: yaml.Node | None) -> int:
    return 1 if node is None or node.start_mark is None else node.start_mark.line + 1
