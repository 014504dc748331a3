"""A mapping file: how the rows of any CSV or JSON lines become events. YAML, checked whole, all errors at once.

Raises MappingError where it is wrong. The form is described in docs/importers.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ettwatch_schemas import EVENT_TYPES, KINDS
from ettwatch_sources.times import UNITS

_TOP: Final = {"version", "format", "delimiter", "job", "time", "attempt", "rank", "host", "source", "events"}
_RULE: Final = {"when", "kind", "set", "time", "start", "end", "duration"}
_VALUE: Final = {"field", "value", "times", "plus", "default", "map", "unit"}
_COMMON: Final = {"v", "id", "kind", "job", "ts", "attempt", "rank", "host", "source"}
FIELDS: Final = {kind: set(model.model_fields) - _COMMON for kind, model in zip(KINDS, EVENT_TYPES, strict=True)} | {
    "phase": {"phase", "parent", "background", "attrs"}
}
"""The fields that a rule of each kind may set; `phase` is a span with both its ends in one row."""


class MappingError(ValueError):
    """The mapping file is wrong; one line for each fault."""


@dataclass(frozen=True, slots=True)
class Value:
    """Where a value comes from: a field of the row, or a constant."""

    field: str | None = None
    value: Any = None
    times: float = 1
    plus: float = 0
    default: Any = None
    map: Mapping[str, Any] | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """Which rows become which event. Rows for which no `when` holds become none."""

    kind: str
    when: tuple[tuple[str, Any], ...] = ()
    set: Mapping[str, Value] = field(default_factory=dict)
    time: Value | None = None
    start: Value | None = None
    end: Value | None = None
    duration: Value | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping file as read."""

    form: str
    delimiter: str
    job: Value | None
    time: Value
    attempt: Value | None
    rank: Value | None
    host: Value | None
    source: str
    rules: tuple[Rule, ...]


def parse_mapping(told: object) -> Mapped:
    """Check a mapping as YAML or JSON gives it. Raises MappingError."""
    faults: list[str] = []
    if not isinstance(told, Mapping):
        raise MappingError("the mapping is no mapping of names to values")
    faults.extend(f"{key}: no such key; there are {', '.join(sorted(_TOP))}" for key in told if key not in _TOP)
    if told.get("version") != 1:
        faults.append("version: must be 1")
    form = told.get("format", "jsonl")
    if form not in {"jsonl", "csv"}:
        faults.append("format: must be jsonl or csv")
    delimiter = told.get("delimiter", ",")
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        faults.append("delimiter: must be one character")
    source = told.get("source", "trainer")
    if source not in {"trainer", "launcher", "scheduler"}:
        faults.append("source: must be trainer, launcher or scheduler")
    values = {name: _value(told.get(name), name, faults) for name in ("job", "time", "attempt", "rank", "host")}
    time = values["time"]
    rules = told.get("events")
    found: list[Rule] = []
    if not isinstance(rules, list) or not rules:
        faults.append("events: must be a list of rules")
    else:
        found = [rule for index, item in enumerate(rules) if (rule := _rule(item, f"events[{index}]", faults))]
        if time is None and any(rule.time is None and rule.start is None for rule in found):
            faults.append("time: is needed, because some rules have no time of their own")
    if faults:
        raise MappingError("\n".join(faults))
    return Mapped(
        str(form),
        str(delimiter),
        values["job"],
        time or Value(),
        values["attempt"],
        values["rank"],
        values["host"],
        str(source),
        tuple(found),
    )


def _rule(told: object, where: str, faults: list[str]) -> Rule | None:
    if not isinstance(told, Mapping):
        faults.append(f"{where}: is no mapping")
        return None
    faults.extend(f"{where}.{key}: no such key; there are {', '.join(sorted(_RULE))}" for key in told.keys() - _RULE)
    kind = told.get("kind")
    if kind not in FIELDS:
        faults.append(f"{where}.kind: must be one of {', '.join(sorted(FIELDS))}")
        return None
    when = told.get("when") or {}
    if not isinstance(when, Mapping):
        faults.append(f"{where}.when: must name fields and their values")
        when = {}
    for name, test in when.items():
        if isinstance(test, Mapping):
            if set(test) != {"matches"}:
                faults.append(f"{where}.when.{name}: must be a value, a list of values or `matches: PATTERN`")
                continue
            try:
                re.compile(str(test["matches"]))
            except re.error as error:
                faults.append(f"{where}.when.{name}: no regular expression: {error}")
    sets = told.get("set") or {}
    if not isinstance(sets, Mapping):
        faults.append(f"{where}.set: must name fields of the event and where they come from")
        sets = {}
    faults.extend(
        f"{where}.set.{name}: {kind} has no such field; it has {', '.join(sorted(FIELDS[kind]))}"
        for name in sets
        if name not in FIELDS[kind]
    )
    values = {name: value for name, told in sets.items() if (value := _value(told, f"{where}.set.{name}", faults))}
    times = {name: _value(told.get(name), f"{where}.{name}", faults) for name in ("time", "start", "end", "duration")}
    if kind == "phase" and not (times["start"] and (times["end"] or times["duration"])):
        faults.append(f"{where}: a phase needs start, and end or duration")
    return Rule(str(kind), tuple(when.items()), values, **times)


def _value(told: object, where: str, faults: list[str]) -> Value | None:
    if told is None:
        return None
    if not isinstance(told, Mapping):
        return Value(value=told)
    faults.extend(f"{where}.{key}: no such key; there are {', '.join(sorted(_VALUE))}" for key in told.keys() - _VALUE)
    if ("field" in told) == ("value" in told):
        faults.append(f"{where}: needs either field or value")
    if told.get("unit") is not None and told["unit"] not in {*UNITS, "iso"}:
        faults.append(f"{where}.unit: must be one of {', '.join(UNITS)}, iso")
    for name in ("times", "plus"):
        if not isinstance(told.get(name, 1), int | float):
            faults.append(f"{where}.{name}: must be a number")
            return None
    if told.get("map") is not None and not isinstance(told["map"], Mapping):
        faults.append(f"{where}.map: must be a mapping of what stands there to what is meant")
        return None
    fields = {name: told[name] for name in ("value", "times", "plus", "default", "unit") if name in told}
    table = told.get("map")
    return Value(
        field=str(told["field"]) if "field" in told else None,
        map={str(key): value for key, value in table.items()} if isinstance(table, Mapping) else None,
        **fields,
    )
