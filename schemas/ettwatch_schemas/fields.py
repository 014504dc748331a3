"""The types of the fields of events, with their limits. All are strict: no value is converted.

The limits are checked inside pydantic-core; only `attrs` costs a Python function.
"""

from math import isfinite
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, StringConstraints
from pydantic_core import PydanticCustomError

from ettwatch_schemas.taxonomy import MAX_PHASE_CHARS, PHASE_PATTERN
from ettwatch_schemas.times import MAX_TS, MIN_TS

Outcome: TypeAlias = Literal["succeeded", "failed", "preempted", "cancelled"]
"""How an attempt or a job ended."""

Cause: TypeAlias = Literal[
    "hardware",
    "network",
    "storage",
    "host_memory",
    "gpu_memory",
    "timeout",
    "dependency",
    "maintenance",
    "capacity",
    "user_code",
    "config",
    "unknown",
]
"""Why an attempt ended."""

Trigger: TypeAlias = Literal["initial", "failure", "preemption", "resize", "manual"]
"""Why an attempt was started."""

Source: TypeAlias = Literal["trainer", "launcher", "scheduler"]
"""Who speaks, in rising order of trust."""

MAX_ATTRS_DEPTH: Final = 32
"""How deep lists and objects may be nested in `attrs`."""

Version: TypeAlias = Annotated[int, Field(ge=1, le=1)]
Ts: TypeAlias = Annotated[int, Field(ge=MIN_TS, le=MAX_TS)]
Amount: TypeAlias = Annotated[int, Field(ge=0, le=2**63 - 1)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]
ExitCode: TypeAlias = Annotated[int, Field(ge=-(2**31), le=2**32 - 1)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=31_536_000)]
JobName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Key: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Name: TypeAlias = Annotated[str, StringConstraints(max_length=512)]
Message: TypeAlias = Annotated[str, StringConstraints(max_length=65_536)]
Phase: TypeAlias = Annotated[str, StringConstraints(max_length=MAX_PHASE_CHARS, pattern=PHASE_PATTERN)]
Labels: TypeAlias = Annotated[dict[Name, Annotated[str, StringConstraints(max_length=4096)]], Field(max_length=256)]


def _fits(value: JsonValue, depth: int) -> None:
    """Raise PydanticCustomError where `value` could not be sent as JSON that everyone reads alike."""
    match value:
        case float() if not isfinite(value):
            raise PydanticCustomError("not_finite", "holds a number that is not finite")
        case int() if not -(2**63) <= value < 2**64:
            raise PydanticCustomError("too_wide", "holds an integer of more than 64 bits")
        case str() if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise PydanticCustomError("not_unicode", "holds half of a surrogate pair") from None
        case dict() | list():
            if depth == MAX_ATTRS_DEPTH:
                raise PydanticCustomError("too_deep", "is nested too deeply")
            if isinstance(value, dict):
                for key in value:
                    _fits(key, depth)
                value = list(value.values())
            for item in value:
                _fits(item, depth + 1)


def _attrs_fit(attrs: dict[str, JsonValue]) -> dict[str, JsonValue]:
    _fits(attrs, 0)
    return attrs


Attrs: TypeAlias = Annotated[dict[Name, JsonValue], Field(max_length=256), AfterValidator(_attrs_fit)]
