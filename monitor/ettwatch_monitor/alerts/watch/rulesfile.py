"""Reading a file of rules: YAML, with the line of everything that is wrong in it.

version: 1
zone: Europe/Berlin
metrics:
  tts: {least_ratio: 1.15}
  share.shutdown: off
thresholds:
  slow starts: {metric: tts, figure: p90, window: 24h, above: 1800, back: 1500, for: 2h}
maintenance:
  - {from: 2026-03-01T22:00:00Z, until: 2026-03-02T04:00:00Z, cluster: c1, reason: new switches}
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from ettwatch_core.nodes import Problem, compose, entries, line_of, near, text_of, texts_of, unknown
from ettwatch_monitor.alerts.deliver import DeliverySettings, read_delivery
from ettwatch_monitor.alerts.detect import METRICS, Calendar, Settings
from ettwatch_monitor.alerts.watch.numbers import Range, number_of
from ettwatch_monitor.alerts.watch.rules import Rules, RulesError
from ettwatch_monitor.alerts.watch.ruleslists import read_thresholds, read_windows
from ettwatch_monitor.alerts.watch.streams import SCOPES
from ettwatch_schemas.durations import parse_duration

__all__ = ["DETECT", "load_rules", "parse_rules"]

_TOP: Final = ("version", "zone", "every", "scopes", "detect", "metrics", "thresholds", "maintenance")
_DELIVERY: Final = ("channels", "silences")
_METRIC: Final = ("weight", "least_ratio", "least_points")
_MOST_BYTES: Final = 1 << 20

DETECT: Final[Mapping[str, Range]] = {
    "fdr": Range(1e-6, 0.5),
    "alone": Range(1e-9, 0.05),
    "baseline_days": Range(7, 365, whole=True),
    "scan_days": Range(1, 180, whole=True),
    "warm_days": Range(0, 365, whole=True),
    "least_before": Range(10, 100_000, whole=True),
    "least_after": Range(5, 10_000, whole=True),
    "least_jobs": Range(1, 10_000, whole=True),
    "least_failures_before": Range(5, 10_000, whole=True),
    "least_failures": Range(3, 10_000, whole=True),
    "burst_minutes": Range(0, 1440, whole=True),
    "repeats_a_day": Range(1, 1000, whole=True),
    "resolve": Range(1e-6, 0.5),
    "accept_days": Range(1, 365, whole=True),
    "quiet_days": Range(1, 365, whole=True),
    "storm_share": Range(0.05, 1.0),
    "storm_least": Range(2, 10_000, whole=True),
    "together_days": Range(0, 60, whole=True),
    "outage_share": Range(0.01, 1.0),
    "outage_least": Range(1, 1_000_000, whole=True),
    "outage_minutes": Range(1, 1440, whole=True),
    "most_new": Range(1, 10_000, whole=True),
}
"""The numbers of the section `detect`, and what they may be."""


def load_rules(path: Path, env: Mapping[str, str] = os.environ) -> Rules:
    """Read a file of rules. Raises RulesError or OSError."""
    raw = path.read_bytes()
    if len(raw) > _MOST_BYTES:
        raise RulesError(f"{path}:1: the file has {len(raw):,} bytes; at most {_MOST_BYTES:,} are read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise RulesError(f"{path}:{line}: not UTF-8; save the file as UTF-8") from None
    return parse_rules(text, str(path), env)


def parse_rules(text: str, source: str, env: Mapping[str, str] = os.environ) -> Rules:
    """Read the text of a file of rules; `source` names it in errors. Raises RulesError with all problems."""
    problems: list[Problem] = []
    root = compose(text, problems)
    rules = Rules()
    if not problems and root is not None:  # an empty file means the usual values
        rules = _rules(root, problems, env)
    if problems:
        raise RulesError("\n".join(f"{source}:{line}: {reason}" for line, reason in sorted(set(problems))))
    return rules


def _rules(root: yaml.Node, problems: list[Problem], env: Mapping[str, str]) -> Rules:
    fields: dict[str, yaml.Node] = {}
    for name, line, node in entries(root, "the file", problems):
        fields[name] = node
        if name not in (*_TOP, *_DELIVERY):
            problems.append(unknown(name, line, (*_TOP, *_DELIVERY)))
    if isinstance(root, yaml.MappingNode) and "version" not in fields:
        problems.append(Problem(1, "no version; begin with version: 1"))
    version = fields.get("version")
    if version is not None and (not isinstance(version, yaml.ScalarNode) or version.value != "1"):
        problems.append(Problem(line_of(version), "version must be 1"))
    told: dict[str, Any] = {}
    readers: dict[str, Callable[[yaml.Node, list[Problem]], Any]] = {
        "every": _every,
        "scopes": _scopes,
        "thresholds": read_thresholds,
        "maintenance": read_windows,
    }
    names = {"every": "every_s", "maintenance": "windows"}
    for name, read in readers.items():
        if name in fields and (value := read(fields[name], problems)) is not None:
            told[names.get(name, name)] = value
    detect = _detect(fields, problems)
    delivery = DeliverySettings()
    if any(name in fields for name in _DELIVERY):
        delivery = read_delivery(root, problems, env)
    return Rules(detect=detect, delivery=delivery, **told)


def _every(node: yaml.Node, problems: list[Problem]) -> float | None:
    text = text_of(node, "every", problems)
    if text is None:
        return None
    try:
        seconds = parse_duration(text) / 1e6
        if not 10 <= seconds <= 86_400:
            raise ValueError(f"{text!r} is not between 10s and a day")
    except ValueError as error:
        problems.append(Problem(line_of(node), f"every: {error}"))
        return None
    return seconds


def _scopes(node: yaml.Node, problems: list[Problem]) -> tuple[str, ...] | None:
    told = texts_of(node, "scopes", problems)
    for name in told:
        if name not in SCOPES:
            reason = f"unknown scope {name!r}{near(name, SCOPES)}; the scopes are {', '.join(SCOPES)}"
            problems.append(Problem(line_of(node), reason))
    return tuple(told) or None


def _detect(fields: Mapping[str, yaml.Node], problems: list[Problem]) -> Settings:
    usual = Settings()
    told: dict[str, Any] = {}
    if "zone" in fields and (zone := text_of(fields["zone"], "zone", problems)) is not None:
        try:
            told["zone"] = Calendar(zone).zone
        except ValueError as error:
            problems.append(Problem(line_of(fields["zone"]), str(error)))
    known = (*DETECT, "dependence", "causes_out")
    section = entries(fields["detect"], "detect", problems) if "detect" in fields else ()
    for name, line, node in section:
        if name in DETECT:
            value = number_of(node, name, DETECT[name], problems)
            if value is not None:
                told[name] = value
        elif name == "dependence":
            text = text_of(node, name, problems)
            if text not in ("positive", "any", None):
                problems.append(Problem(line, "dependence must be positive or any"))
            told[name] = text
        elif name == "causes_out":
            told[name] = frozenset(texts_of(node, name, problems))
        else:
            problems.append(unknown(name, line, known))
    settings = replace(usual, **{name: value for name, value in told.items() if value is not None})
    return _metrics(fields["metrics"], settings, problems) if "metrics" in fields else settings


def _metrics(node: yaml.Node, settings: Settings, problems: list[Problem]) -> Settings:
    ranges = {"weight": Range(1e-3, 1000), "least_ratio": Range(1.0, 100), "least_points": Range(0.0, 100)}
    told = {"weight": dict(settings.weights), "least_ratio": dict(settings.least_ratio)}
    told["least_points"] = dict(settings.least_points)
    off: set[str] = set()
    for name, line, value in entries(node, "metrics", problems):
        if name not in METRICS:
            reason = f"unknown metric {name!r}{near(name, METRICS)}; the metrics are {', '.join(METRICS)}"
            problems.append(Problem(line, reason))
        elif isinstance(value, yaml.ScalarNode):
            if value.value.lower() not in ("off", "false", "no"):
                problems.append(Problem(line_of(value), f"{name} must be off, or keys such as {{least_ratio: 1.2}}"))
            off.add(name)
        else:
            for key, at, number in entries(value, f"metric {name!r}", problems):
                if key not in _METRIC:
                    problems.append(unknown(key, at, _METRIC))
                elif (amount := number_of(number, f"{key} of {name}", ranges[key], problems)) is not None:
                    told[key][name] = float(amount)
    return replace(
        settings,
        weights=told["weight"],
        least_ratio=told["least_ratio"],
        least_points=told["least_points"],
        off=frozenset(off),
    )
