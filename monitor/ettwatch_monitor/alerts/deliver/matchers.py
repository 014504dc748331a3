"""Alertmanager's matchers of labels: `team="ads"`, `cluster!=eu-1`, `model=~"llama.*"`, `severity!~"info|warning"`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Matcher", "MatcherError", "all_match", "parse_matchers"]

_MATCHER: Final = re.compile(r"\s*([A-Za-z_:][A-Za-z0-9_:]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", '"': '"', "\\": "\\"}
_PART: Final = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*")+', re.DOTALL)


class MatcherError(ValueError):
    """A text is no matcher. One line that says why, and what to write."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on a label. A label that is missing counts as empty."""

    name: str
    op: str
    """`=`, `!=`, `=~` or `!~`; regular expressions match the whole value."""
    value: str
    _pattern: "re.Pattern[str] | None" = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.op.endswith("~"):
            try:
                pattern = re.compile(self.value, re.DOTALL)
            except re.error as error:
                raise MatcherError(f"{self.value!r} is no regular expression: {error}") from None
            object.__setattr__(self, "_pattern", pattern)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels fulfil it."""
        value = labels.get(self.name, "")
        same = value == self.value if self._pattern is None else self._pattern.fullmatch(value) is not None
        return same != self.op.startswith("!")

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'{self.name}{self.op}"{value}"'


def parse_matchers(text: str) -> tuple[Matcher, ...]:
    """Read one matcher, or several with commas between them, perhaps in braces. All have to match.

    Raises MatcherError.
    """
    inside = text.strip()
    if inside.startswith("{") and inside.endswith("}"):
        inside = inside[1:-1]
    inside = inside.strip().removesuffix(",")
    if not inside.strip():
        raise MatcherError('no matcher; write one such as team="ads"')
    parts = _PART.findall(inside)
    if ",".join(parts) != inside:
        raise MatcherError(f'{text.strip()!r} has a quote or a comma too many; write such as team="ads", cluster=eu-1')
    return tuple(_matcher(part) for part in parts)


def all_match(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Tell whether labels fulfil all matchers."""
    return all(matcher.matches(labels) for matcher in matchers)


def _matcher(text: str) -> Matcher:
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise MatcherError(
            f'{text.strip()!r} is no matcher; write a label, one of = != =~ !~, and a value, such as team="ads"'
        )
    name, op, value = found.groups()
    if value.startswith('"'):
        quoted = _QUOTED.fullmatch(value)
        if quoted is None:
            raise MatcherError(f"{text.strip()!r} has text after the quotes, or the quotes are not closed")
        value = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), quoted[1], flags=re.DOTALL)
    elif '"' in value:
        raise MatcherError(f"{text.strip()!r} has quotes inside of a value; quote all of it")
    return Matcher(name, op, value)
