"""Changes in words, as people type them, and as objects, as programs send them."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from ettwatch_monitor.advice.change import BEST, Attempts, Change
from ettwatch_monitor.advice.remedies import BY_NAME
from ettwatch_schemas import COMPONENTS, component_of
from ettwatch_schemas.durations import parse_duration

_DERIVED: Final = (
    "wasted_training.rework",
    "wasted_training.no_progress",
    "wasted_training.hang",
    "effective_training",
)
"""What follows from other things: no number of its own."""
_SCOPES: Final = ("team", "model", "cluster", "attempts")
_SWITCHES: Final = {
    "overlap": "stages of start-up overlap",
    "stragglers": "no host is slower than others",
    "notice": "a preempted attempt saves first",
}
_MOST: Final = 1_000.0
_SHAPE: Final = re.compile(r"(?P<what>[a-z0-9_.]+)\s*(?P<sign>[x*=])\s*(?P<value>\S+)", re.IGNORECASE)
_HELP: Final = (
    "write STAGE x FACTOR, save_interval = DURATION or best, save_blocking x SHARE, detection = DURATION, "
    "or remedy = NAME; then team=, model=, cluster=, attempts=first or later"
)


class AdviceError(ValueError):
    """A question makes no sense. One line that says what was wrong, and what to do."""


def parse_change(told: object) -> tuple[Change, ...]:
    """Read a change: a text, or an object. A remedy can be several. Raises AdviceError."""
    if isinstance(told, str):
        return _changes(*_words(told))
    if isinstance(told, Mapping):
        return _changes(*_object(told))
    raise AdviceError(f"a change is a text or an object, not {_shown(told)}; {_HELP}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _words(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    scope: dict[str, str] = {}
    rest = []
    for word in text.split():
        name, sign, value = word.partition("=")
        if sign and name in _SCOPES and value:
            scope[name] = value
        else:
            rest.append(word)
    match = _SHAPE.fullmatch(" ".join(rest))
    if match is None:
        raise AdviceError(f"{_shown(text)} is no change; {_HELP}")
    what, value = match["what"].lower(), match["value"]
    if what == "save_interval":
        return {"save_interval_s": BEST if value == BEST else _seconds(value)}, scope
    if what == "save_blocking":
        return {"save_blocking": value}, scope
    if what == "detection":
        return {"detection_s": _seconds(value)}, scope
    if what == "remedy":
        return {"remedy": value}, scope
    return {"stage": what, "factor": value}, scope


def _seconds(text: str) -> float:
    try:
        return parse_duration(text) / 1_000_000
    except ValueError as error:
        raise AdviceError(str(error)) from None


def _object(told: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    scope = {}
    rest = {}
    for name, value in told.items():
        if name not in _SCOPES:
            rest[str(name)] = value
        elif value is not None:
            if not isinstance(value, str):
                raise AdviceError(f"{name} is a text, not {_shown(value)}")
            scope[str(name)] = value
    return rest, scope


def _changes(what: dict[str, Any], scope: dict[str, str]) -> tuple[Change, ...]:
    told = scope.get("attempts", "all")
    attempts = next((name for name in get_args(Attempts) if name == told), None)
    if attempts is None:
        raise AdviceError(f"attempts={_shown(told)} is unknown; write all, first or later")
    names = frozenset(what)
    if attempts != "all" and names != {"stage", "factor"}:
        raise AdviceError("attempts goes with a stage only; leave it out")
    changes: tuple[Change, ...] = ()
    if names == {"stage", "factor"}:
        stage = _stage(what["stage"])
        changes = (Change(stage=stage, factor=_number(what["factor"], stage, _MOST), attempts=attempts),)
    elif names == {"save_interval_s"}:
        value = what["save_interval_s"]
        best = value == BEST
        changes = (Change(save_interval_s=BEST if best else _number(value, "save_interval_s", 864_000.0, least=1.0)),)
    elif names == {"save_blocking"}:
        changes = (Change(save_blocking=_number(what["save_blocking"], "save_blocking", 1.0)),)
    elif names == {"detection_s"}:
        changes = (Change(detection_s=_number(what["detection_s"], "detection_s", 864_000.0)),)
    elif names == {"remedy"}:
        remedy = BY_NAME.get(what["remedy"]) if isinstance(what["remedy"], str) else None
        if remedy is None:
            raise AdviceError(f"there is no remedy {_shown(what['remedy'])}; there are {', '.join(BY_NAME)}")
        changes = remedy.changes
    if changes:
        where = {name: scope.get(name) for name in ("team", "model", "cluster")}
        return tuple(replace(c, team=where["team"], model=where["model"], cluster=where["cluster"]) for c in changes)
    raise AdviceError(
        f"a change with {', '.join(sorted(map(_shown, names))) or 'nothing'} is unknown; give stage and factor, or one "
        "of save_interval_s, save_blocking, detection_s, remedy; and team, model, cluster where it is not for all"
    )


def _stage(value: object) -> str:
    if not isinstance(value, str):
        raise AdviceError(f"stage is a text, not {_shown(value)}")
    if value in _DERIVED or value == "wasted_training":
        raise AdviceError(
            f"{value} follows from other things and has no number of its own; change save_interval, save_blocking, "
            "detection, or one of its stages, such as wasted_training.checkpoint_save, evaluation or data_stall"
        )
    try:
        component_of(value)
    except ValueError:
        raise AdviceError(f"{_shown(value)} is no stage; it begins with one of {', '.join(COMPONENTS)}") from None
    return value


def _number(value: object, name: str, most: float, least: float = 0.0) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not least <= number <= most:
        raise AdviceError(f"{name}: {_shown(value)} is no number from {least:g} to {most:,g}")
    return number


def described(change: Change) -> str:
    """Return a change in words."""
    parts = []
    if change.stage is not None:
        parts.append(f"{change.stage} x {change.factor:g}")
    if change.save_interval_s is not None:
        value = change.save_interval_s
        parts.append(f"save_interval = {value if isinstance(value, str) else f'{value:g}s'}")
    if change.save_blocking is not None:
        parts.append(f"save_blocking x {change.save_blocking:g}")
    if change.detection_s is not None:
        parts.append(f"detection = {change.detection_s:g}s")
    parts += [words for name, words in _SWITCHES.items() if getattr(change, name)]
    if change.cache is not None:
        parts.append(f"compiled code is shared by the {change.cache}")
    if change.attempts != "all":
        parts.append(f"attempts={change.attempts}")
    parts += [
        f"{name}={value}" for name in ("team", "model", "cluster") if (value := getattr(change, name)) is not None
    ]
    return " ".join(parts)
