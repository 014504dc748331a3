"""Reads a scenario from YAML."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ettwatch_sim.life.config import ScenarioError, explain, path_of
from ettwatch_sim.life.profiles import PROFILES
from ettwatch_sim.life.scenario import Scenario

_MOST_BYTES = 1 << 20


def load_scenario(path: Path) -> Scenario:
    """Read a scenario from a file. Raises ScenarioError where it is wrong, OSError where it cannot be read."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ScenarioError([f"{path}: has more than {_MOST_BYTES} bytes; a scenario is a short text"])
    try:
        return parse_scenario(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ScenarioError([f"{path}: is no text in UTF-8; write it as YAML"]) from None
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {problem}" for problem in error.problems) from None


def parse_scenario(text: str) -> Scenario:
    """Read a scenario from YAML. A model may say `like: NAME` and give only what differs. Raises ScenarioError."""
    import yaml

    try:
        told = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        where = getattr(error, "problem", None) or "it cannot be read"
        raise ScenarioError([f"is no YAML: {where}; look for quotes, colons and indents"]) from None
    if not isinstance(told, dict):
        raise ScenarioError(["is no scenario: write fields, such as clusters: and teams:"])
    try:
        plain = json.loads(json.dumps(told, default=str))
    except (ValueError, TypeError, RecursionError):
        raise ScenarioError(["holds what is neither text, number, list nor fields; write plain YAML"]) from None
    models = plain.get("models")
    if isinstance(models, list):
        plain["models"] = [_like(i, model) for i, model in enumerate(models)]
    try:
        return Scenario.model_validate_json(json.dumps(plain))
    except ValidationError as error:
        raise explain(error, Scenario) from None


def _like(i: int, model: Any) -> Any:
    if not isinstance(model, dict) or "like" not in model:
        return model
    rest = {name: value for name, value in model.items() if name != "like"}
    base = PROFILES.get(model["like"]) if isinstance(model["like"], str) else None
    if base is None:
        place = path_of(("models", i, "like"))
        raise ScenarioError([f"{place}: {model['like']!r} is no profile; write one of {', '.join(PROFILES)}"])
    return base.model_dump() | rest
