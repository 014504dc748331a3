"""YAML with line numbers: nodes of a text, walked while problems are collected."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import NamedTuple

import yaml

__all__ = ["Problem", "compose", "entries", "line_of", "near", "text_of", "texts_of", "unknown"]

_NULL = "tag:yaml.org,2002:null"


class Problem(NamedTuple):
    """What is wrong in one line of a file."""

    line: int
    reason: str


def compose(text: str, problems: list[Problem]) -> yaml.Node | None:
    """Return the root node of a text; None where there is none, or where it is not YAML, which is a problem."""
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.append(Problem(mark.line + 1 if mark else 1, f"not YAML: {error.problem or error.context}"))
    except yaml.YAMLError as error:
        problems.append(Problem(1, f"not YAML: {str(error).splitlines()[0]}"))
    except RecursionError:
        problems.append(Problem(1, "not YAML that can be read: it is nested too deeply"))
    return None


def entries(node: yaml.Node | None, what: str, problems: list[Problem]) -> Iterator[tuple[str, int, yaml.Node]]:
    """Yield (key, line, value) of a mapping; anything else, and a key told twice, is a problem."""
    if not isinstance(node, yaml.MappingNode):
        problems.append(Problem(line_of(node), f"{what} must be a mapping of keys to values"))
        return
    seen: dict[str, int] = {}
    for key, value in node.value:
        line = line_of(key)
        if not isinstance(key, yaml.ScalarNode):
            problems.append(Problem(line, f"a key of {what} must be a plain text"))
        elif key.value in seen:
            first = seen[key.value]
            problems.append(Problem(line, f"{key.value!r} stands twice, first in line {first}; keep one of the two"))
        else:
            seen[key.value] = line
            yield key.value, line, value


def text_of(node: yaml.Node, what: str, problems: list[Problem]) -> str | None:
    """Return a text without the space around it; anything else, also an empty one, is a problem and None."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == _NULL or not node.value.strip():
        problems.append(Problem(line_of(node), f"{what} must be a text that is not empty"))
        return None
    text: str = node.value.strip()
    if not text.isprintable():
        problems.append(Problem(line_of(node), f"{what} holds characters that cannot be printed; remove them"))
        return None
    return text


def texts_of(node: yaml.Node, what: str, problems: list[Problem]) -> list[str]:
    """Return the texts of a list, or of a single text; anything else is a problem. None is told twice."""
    if isinstance(node, yaml.SequenceNode) and node.value:
        texts = [text_of(item, f"an entry of {what}", problems) for item in node.value]
    elif isinstance(node, yaml.ScalarNode):
        texts = [text_of(node, what, problems)]
    else:
        problems.append(Problem(line_of(node), f"{what} must be a text, or a list of texts"))
        return []
    return list(dict.fromkeys(text for text in texts if text is not None))


def near(name: str, known: Iterable[str]) -> str:
    """Return a question after the known name that looks most like an unknown one, or nothing."""
    close = get_close_matches(name, list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def unknown(name: str, line: int, known: tuple[str, ...]) -> Problem:
    """Return the problem of a key that means nothing."""
    return Problem(line, f"unknown key {name!r}{near(name, known)}; the keys are {', '.join(known)}")


def line_of(node: yaml.Node | None) -> int:
    """Return the line of a node, counted from 1."""
    return 1 if node is None or node.start_mark is None else node.start_mark.line + 1
