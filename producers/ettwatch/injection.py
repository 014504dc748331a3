"""How `ettwatch run --auto` reaches the Pythons that its command starts: a `sitecustomize` in front of their path."""

import os
from collections.abc import Mapping
from typing import Final

FOLDER: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "auto", "inject")
"""Holds nothing but `sitecustomize.py`."""


def injected(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make every Python under this environment import `ettwatch.auto` when it starts."""
    before = env.get("PYTHONPATH", "")
    others = [part for part in before.split(os.pathsep) if part != FOLDER] if before else []
    return {"PYTHONPATH": os.pathsep.join([FOLDER, *others]), "ETTWATCH_AUTO": "1"}
