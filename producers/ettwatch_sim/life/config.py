"""What every part of a scenario is: a frozen, checked value; and what is said where one is wrong."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Length: TypeAlias = Annotated[float, Field(ge=0, le=31_536_000)]
"""Seconds."""
Positive: TypeAlias = Annotated[float, Field(gt=0, le=1e12)]
Factor: TypeAlias = Annotated[float, Field(gt=0, le=1_000)]
Spread: TypeAlias = Annotated[float, Field(ge=0, le=2)]
"""Standard deviation of the logarithm."""
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class ScenarioError(ValueError):
    """A scenario is wrong: one line of text for each problem, with the field, what is wrong, and what to do."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class Config(BaseModel):
    """A part of a scenario."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def explain(error: ValidationError, kind: type[BaseModel]) -> ScenarioError:
    """Return what pydantic found wrong, in words of the scenario."""
    problems: list[str] = []
    errors = error.errors()
    for each in errors:
        place = each["loc"]
        if any(len(other["loc"]) > len(place) and other["loc"][: len(place)] == place for other in errors):
            continue  # a list with a bad item is told to be too short as well
        told = _problem(each["loc"], each["msg"], each["type"], each.get("input"), kind, each.get("ctx", {}))
        problems += told.split("\n")
    return ScenarioError(problems)


def path_of(loc: Iterable[int | str]) -> str:
    """Write a place in a scenario as `teams[2].jobs_per_day`."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the scenario"


def _problem(
    loc: tuple[int | str, ...], said: str, code: str, given: object, kind: type[BaseModel], more: Mapping[str, Any]
) -> str:
    place = path_of(loc)
    if code == "extra_forbidden":
        known = _fields(kind, loc[:-1])
        near = get_close_matches(str(loc[-1]), known, 1)
        return f"{place}: there is no such field; " + (
            f"write {near[0]}" if near else f"the fields are {', '.join(sorted(known))}"
        )
    if code == "missing":
        return f"{place}: is missing; give it"
    if code == "value_error":
        return f"{place}: {more['error']}" if loc else str(more["error"])
    if code == "literal_error":
        near = get_close_matches(str(given), more["expected"].replace("'", "").replace(" or ", ", ").split(", "), 1)
        return f"{place}: {given!r} is none of {more['expected']}" + (f"; write {near[0]}" if near else "")
    shown = repr(given)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    return f"{place}: {shown} does not fit; {said[:1].lower()}{said[1:]}"


def _fields(kind: type[BaseModel], loc: Iterable[int | str]) -> list[str]:
    """Return the names of the fields of the part of `kind` at a place."""
    for part in loc:
        if isinstance(part, str):
            kind = _model_in(kind.model_fields[part].annotation) or kind
    return list(kind.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, getattr(annotation, "__args__", ()))), None)


def microseconds(text: str) -> int:
    """Read a day or a time in ISO 8601 as microseconds since the Unix epoch; without a zone it is UTC.

    Raises ValueError.
    """
    moment = datetime.fromisoformat(text)
    offset = moment.utcoffset()
    whole = moment.replace(tzinfo=None) - datetime(1970, 1, 1)
    if offset is not None:
        whole -= offset
    return (whole.days * 86_400 + whole.seconds) * 1_000_000 + whole.microseconds
