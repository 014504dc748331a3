"""Numbers of a file of rules: read from their nodes, within what makes sense."""

import math
from typing import NamedTuple

import yaml

from ettwatch_core.nodes import Problem, line_of

__all__ = ["Range", "number_of"]


class Range(NamedTuple):
    """What a number may be: from `least` to `most`, both included; whole or not."""

    least: float
    most: float
    whole: bool = False


def number_of(node: yaml.Node, what: str, may_be: Range, problems: list[Problem]) -> int | float | None:
    """Return a number; anything else is a problem and None."""
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    try:
        value = int(text) if may_be.whole else float(text)
    except ValueError:
        value = math.nan
    if not may_be.least <= value <= may_be.most:
        kind = "a whole number" if may_be.whole else "a number"
        problems.append(Problem(line_of(node), f"{what} must be {kind} from {may_be.least:g} to {may_be.most:g}"))
        return None
    return value
