"""Slowness that one small machine does not have: read from a file that gives a reason for each value."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ettwatch_trainer.reference.config import ReferenceConfig

FILE = "slowness.json"
NAMES = ("open_s", "storage_mb_s", "collective_ms", "host_start_s")


class SlownessError(ValueError):
    """The file cannot be used. The text says where, what was wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Slow:
    """One value with its unit and the reason why it is this and no other."""

    value: float
    unit: str
    why: str


@dataclass(frozen=True, slots=True)
class Slowness:
    """What is injected, by the setting of the reference trainer that it goes to."""

    source: str
    values: dict[str, Slow]

    def put_on(self, config: ReferenceConfig) -> ReferenceConfig:
        """The config with this slowness and no other."""
        values = {name: self.values[name].value if name in self.values else 0.0 for name in NAMES}
        return dataclasses.replace(
            config,
            open_s=values["open_s"],
            storage_mb_s=values["storage_mb_s"],
            collective_ms=values["collective_ms"],
            host_start_s=values["host_start_s"],
        )


def no_slowness() -> Slowness:
    """The machine as it is."""
    return Slowness("none", {})


def committed_slowness() -> Slowness:
    """The values that come with the package."""
    return _parse(files("ettwatch_trainer.reference").joinpath(FILE).read_text(), FILE)


def read_slowness(path: Path) -> Slowness:
    """Read a file. Raises SlownessError for a name that is not known, and for a value without unit or reason."""
    try:
        text = path.read_text()
    except OSError as error:
        raise SlownessError(f"{path} cannot be read: {error.strerror or error}") from None
    return _parse(text, str(path))


def _parse(text: str, source: str) -> Slowness:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise SlownessError(f"{source} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise SlownessError(f"{source} has to be one object, of names and their values")
    values: dict[str, Slow] = {}
    for name, entry in found.items():
        if name not in NAMES:
            raise SlownessError(f"{source}: there is no {name!r}; known are {', '.join(NAMES)}")
        if not isinstance(entry, dict) or set(entry) != {"value", "unit", "why"}:
            raise SlownessError(f"{source}: {name} needs value, unit and why, and nothing else")
        value, unit, why = entry["value"], entry["unit"], entry["why"]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise SlownessError(f"{source}: {name}: {value!r} is no number of at least 0")
        if not isinstance(unit, str) or not isinstance(why, str) or not why.strip():
            raise SlownessError(f"{source}: {name} needs a text as unit, and a reason")
        values[name] = Slow(float(value), unit, why)
    return Slowness(source, values)
