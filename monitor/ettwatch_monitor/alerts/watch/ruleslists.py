"""The lists of a file of rules: plain thresholds, and planned maintenance."""

from collections.abc import Mapping
from typing import Final

import yaml

from ettwatch_core.nodes import Problem, entries, line_of, near, text_of, unknown
from ettwatch_monitor.alerts.alert import SEVERITIES, Severity
from ettwatch_monitor.alerts.detect import METRICS
from ettwatch_monitor.alerts.watch.numbers import Range, number_of
from ettwatch_monitor.alerts.watch.threshold import FIGURES, Figure, Threshold
from ettwatch_monitor.alerts.watch.window import Window
from ettwatch_schemas.durations import parse_duration, parse_instant

__all__ = ["read_thresholds", "read_windows"]

_THRESHOLD: Final = ("metric", "figure", "window", "above", "below", "back", "for", "least", "match", "severity")
_WINDOW: Final = ("from", "until", "reason", "team", "model", "cluster")
_SCOPES: Final = ("team", "owner", "component", "model", "cluster", "scope")
_LONGEST_US: Final = 35 * 86_400_000_000
_ANY: Final = Range(-1e12, 1e12)


def read_thresholds(node: yaml.Node, problems: list[Problem]) -> tuple[Threshold, ...]:
    """Read plain thresholds by name; what is wrong goes to `problems`."""
    found = []
    for name, line, value in entries(node, "thresholds", problems):
        before = len(problems)
        fields = _fields(value, f"threshold {name!r}", _THRESHOLD, problems)
        if len(problems) == before:
            made = _threshold(name, line, fields, problems)
            if made is not None:
                found.append(made)
    return tuple(found)


def _threshold(name: str, line: int, fields: Mapping[str, yaml.Node], problems: list[Problem]) -> Threshold | None:
    before = len(problems)
    if ("above" in fields) == ("below" in fields):
        problems.append(Problem(line, f"threshold {name!r} needs one of above and below"))
    metric = _one_of(fields, "metric", tuple(METRICS), line, problems)
    figure = _one_of(fields, "figure", FIGURES, line, problems) if "figure" in fields else None
    if len(problems) > before or metric is None:
        return None
    rate = METRICS[metric].kind == "rate"
    chosen: Figure = figure or ("rate" if rate else "median")  # type: ignore[assignment]
    if (chosen == "rate") != rate and chosen != "count":
        fit = "rate or count" if rate else "median, p90, p99, mean or count"
        problems.append(Problem(line_of(fields.get("figure")), f"figure of {metric} must be {fit}"))
    above = "above" in fields
    limit = number_of(fields["above" if above else "below"], "the limit", _ANY, problems)
    back = number_of(fields["back"], "back", _ANY, problems) if "back" in fields else None
    if limit is not None and back is not None and (back > limit if above else back < limit):
        problems.append(Problem(line_of(fields["back"]), "back lies on the wrong side of the limit: it would flap"))
    window = _duration(fields, "window", 24 * 3_600_000_000, problems)
    hold = _duration(fields, "for", 0, problems)
    least = number_of(fields["least"], "least", Range(1, 1_000_000, whole=True), problems) if "least" in fields else 1
    severity = _one_of(fields, "severity", SEVERITIES, line, problems) if "severity" in fields else "warning"
    match = _match(fields["match"], problems) if "match" in fields else ()
    if len(problems) > before or limit is None or least is None:
        return None
    rank: Severity = severity  # type: ignore[assignment]
    return Threshold(name, metric, chosen, window, float(limit), above, back, hold, int(least), match, rank)


def read_windows(node: yaml.Node, problems: list[Problem]) -> tuple[Window, ...]:
    """Read planned maintenance; what is wrong goes to `problems`."""
    if not isinstance(node, yaml.SequenceNode):
        problems.append(Problem(line_of(node), "maintenance must be a list, such as [{from: T, until: T}]"))
        return ()
    found = []
    for item in node.value:
        before = len(problems)
        fields = _fields(item, "a time of maintenance", _WINDOW, problems)
        start, end = (_instant(fields, name, item, problems) for name in ("from", "until"))
        texts = {name: text_of(fields[name], name, problems) for name in _WINDOW[2:] if name in fields}
        if len(problems) > before or start is None or end is None:
            continue
        if start >= end:
            problems.append(Problem(line_of(item), "the maintenance ends before it begins; correct from or until"))
            continue
        reason = texts.pop("reason", None) or ""
        found.append(Window(start, end, reason, **texts))
    return tuple(dict.fromkeys(found))


def _fields(node: yaml.Node, what: str, known: tuple[str, ...], problems: list[Problem]) -> dict[str, yaml.Node]:
    fields = {}
    for name, line, value in entries(node, what, problems):
        if name in known:
            fields[name] = value
        else:
            problems.append(unknown(name, line, known))
    return fields


def _one_of(
    fields: Mapping[str, yaml.Node], name: str, known: tuple[str, ...], line: int, problems: list[Problem]
) -> str | None:
    if name not in fields:
        problems.append(Problem(line, f"{name} is missing; give one of {', '.join(known)}"))
        return None
    text = text_of(fields[name], name, problems)
    if text is not None and text not in known:
        reason = f"unknown {name} {text!r}{near(text, known)}; give one of {', '.join(known)}"
        problems.append(Problem(line_of(fields[name]), reason))
        return None
    return text


def _duration(fields: Mapping[str, yaml.Node], name: str, usual: int, problems: list[Problem]) -> int:
    text = text_of(fields[name], name, problems) if name in fields else None
    if text is None:
        return usual
    try:
        value = parse_duration(text)
        if not 0 <= value <= _LONGEST_US or (name == "window" and not value):
            raise ValueError(f"{text!r} is not between 0 and 35 days; write one like 30m, 24h or 7d")
    except ValueError as error:
        problems.append(Problem(line_of(fields[name]), f"{name}: {error}"))
        return usual
    return value


def _instant(fields: Mapping[str, yaml.Node], name: str, item: yaml.Node, problems: list[Problem]) -> int | None:
    if name not in fields:
        problems.append(Problem(line_of(item), f"{name} is missing; give a time such as 2026-03-01T22:00:00Z"))
        return None
    text = text_of(fields[name], name, problems)
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        problems.append(Problem(line_of(fields[name]), f"{name}: {error}"))
        return None


def _match(node: yaml.Node, problems: list[Problem]) -> tuple[tuple[str, str], ...]:
    fields = _fields(node, "match", _SCOPES, problems)
    pairs = ((name, text_of(value, name, problems)) for name, value in fields.items())
    return tuple((name, text) for name, text in pairs if text is not None)
