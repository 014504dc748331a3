"""From what pydantic reports to a DecodeError: worked out only after decoding has failed."""

import re
from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ettwatch_schemas.errors import DecodeError, is_not, shorten
from ettwatch_schemas.events import EVENT_TYPES, KINDS
from ettwatch_schemas.taxonomy import COMPONENTS
from ettwatch_schemas.times import TIME_FIX, wrong_unit

_MODELS: Final = dict(zip(KINDS, EVENT_TYPES, strict=True))
_ONE_OBJECT: Final = "send one JSON object"
_SEND_V: Final = "send 1, the version of the wire format"
# What pydantic calls the wrong type -> what is wanted.
_WANTED: Final = {
    "int_type": "an integer",
    "float_type": "a number",
    "string_type": "a string",
    "bool_type": "true or false",
    "dict_type": "an object",
}
# What the check of `attrs` found -> (code, what to do).
_OTHERS: Final = {
    "not_finite": ("not_finite", "send finite numbers"),
    "too_wide": ("out_of_range", "send it as a string"),
    "too_deep": ("bad_length", "send flat values"),
}
_HALF_PAIR: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def explain(error: ValidationError, data: bytes) -> DecodeError:
    """Say what is wrong with `data`, which pydantic refused with `error`. The first fault is told."""
    first = error.errors(include_url=False)[0]
    match first["type"]:
        case "json_invalid":
            return bad_json(data, first["ctx"]["error"])
        case "union_tag_not_found" | "union_tag_invalid":
            return _bad_kind(first["input"])
        case _ if not first["loc"]:
            value = first["input"]
            return DecodeError("not_an_object", is_not(value, "an event"), _ONE_OBJECT, value=shorten(value))
        case _:
            return _bad_field(first)


def no_version() -> DecodeError:
    """Return the error of an event without `v`."""
    return DecodeError("missing_field", "is missing", f"every event must carry it: {_SEND_V}", "v")


def bad_json(data: bytes, message: str) -> DecodeError:
    """Say why `data` is not JSON, given what the parser said."""
    if not data.strip():
        return DecodeError("empty", "is empty", _ONE_OBJECT, value="the message")
    if data.startswith(b"\xef\xbb\xbf"):
        return DecodeError("bad_json", "starts with a byte order mark", "send UTF-8 without it", value="the message")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return not_utf8(error)
    fix = f"{_ONE_OBJECT}, or an array of them"
    if _HALF_PAIR.search(data) and ("hex escape" in message or "surrogate" in message):
        message, fix = f"half of a surrogate pair: {message}", "send text as UTF-8, or escapes in pairs"
    return DecodeError("bad_json", f"is not JSON ({message})", fix, value=shorten(text))


def not_utf8(error: UnicodeDecodeError | UnicodeEncodeError) -> DecodeError:
    """Say which byte, or which character of a str, cannot be UTF-8."""
    if isinstance(error, UnicodeDecodeError):
        what = f"byte 0x{error.object[error.start]:02x}"
    else:
        what = f"character {error.object[error.start]!r}"
    value = f"{what} at offset {error.start}"
    return DecodeError("not_utf8", "is not UTF-8", "encode the message as UTF-8", value=value)


def too_large(size: int, limit: int, what: str) -> DecodeError:
    """Say that `size` bytes are more than `limit`."""
    return DecodeError(
        "too_large",
        f"is more than the {limit} bytes that {what} may have",
        "shorten message, labels or attrs, or send fewer events in one message",
        value=f"a message of {size} bytes",
    )


def empty_array() -> DecodeError:
    """Return the error of an array without events."""
    return DecodeError("empty", "is empty", "send at least one event", value="the array")


def mixed_jobs(job: str, first: str) -> DecodeError:
    """Say that an event of `job` stands in an array whose first good event is of the job `first`."""
    return DecodeError(
        "mixed_jobs",
        f"is another job than that of the first good event of the array, {shorten(first)}",
        "send the events of each job in messages of their own",
        "job",
        shorten(job),
    )


def _bad_kind(event: Mapping[str, object]) -> DecodeError:
    # A newer version may have other kinds: the version is the better reason.
    if "v" not in event:
        return no_version()
    version = event["v"]
    if type(version) is not int or version != 1:
        return _bad_version(version)
    if "kind" not in event:
        fix = f"every event must carry it: send one of {', '.join(KINDS)}"
        return DecodeError("missing_field", "is missing", fix, "kind")
    kind, fix = event["kind"], f"send one of {', '.join(KINDS)}"
    if not isinstance(kind, str):
        return DecodeError("bad_type", is_not(kind, "a string"), fix, "kind", shorten(kind))
    return DecodeError("unknown_kind", "is no kind of event in version 1", fix, "kind", shorten(kind))


def _bad_version(value: object) -> DecodeError:
    if type(value) is not int:
        return DecodeError("bad_type", is_not(value, "an integer"), _SEND_V, "v", shorten(value))
    return DecodeError(
        "unsupported_version",
        "is a version of the wire format that is not known here",
        "send version 1, or update the receiver",
        "v",
        shorten(value),
    )


def _bad_field(found: ErrorDetails) -> DecodeError:
    kind, name, *inside = (str(part) for part in found["loc"])
    about = _MODELS[kind].model_fields[name].description
    # Keys of labels come from outside: they must not break the line.
    field = ".".join([name, *(part if part.isidentifier() else shorten(part) for part in inside)])
    if found["type"] == "missing":
        return DecodeError("missing_field", "is missing", f"every {kind} event must carry it: {about}", field)
    if name == "v":
        return _bad_version(found["input"])
    if name == "ts" or name.endswith("_ts"):
        code, reason, fix = _judge_time(found["input"])
    else:
        code, reason, fix = _judge(found)
        fix = f"{fix} ({about})"
    return DecodeError(code, reason, fix, field, shorten(found["input"]))


def _judge_time(value: object) -> tuple[str, str, str]:
    """Return (code, reason, fix) for a time."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if found := wrong_unit(value):
            unit, remedy = found
            return "wrong_time_unit", f"is in {unit}", f"{TIME_FIX} ({remedy})"
        if isinstance(value, int):
            return "out_of_range", "is no time between the years 2000 and 2200 in microseconds", TIME_FIX
    return "bad_type", is_not(value, "an integer"), TIME_FIX


def _judge(found: ErrorDetails) -> tuple[str, str, str]:
    """Return (code, reason, fix) for the value of any other field."""
    value, sort, limits = found["input"], found["type"], found.get("ctx", {})
    limit = limits.get("max_length")
    match sort:
        case "int_type" | "float_type" | "string_type" | "bool_type" | "dict_type":
            wanted = _WANTED[sort]
            return "bad_type", is_not(value, wanted), f"send {wanted}"
        case "literal_error":
            code = "bad_value" if isinstance(value, str) else "bad_type"
            return code, "is not a legal value", f"send one of {limits['expected']}"
        case "greater_than_equal":
            low = limits["ge"]
            return (
                "out_of_range",
                "is negative" if low == 0 else f"is less than {low}",
                f"send at least {low}",
            )
        case "greater_than":
            return "out_of_range", f"is not more than {limits['gt']}", f"send more than {limits['gt']}"
        case "less_than_equal":
            return "out_of_range", f"is more than {limits['le']}", f"send at most {limits['le']}"
        case "finite_number":
            return "not_finite", "is not finite", "leave the field out, or send a finite number"
        case "string_too_short":
            return "bad_length", "is empty", "send at least one character"
        case "string_too_long":
            return "bad_length", f"has {len(value)} characters", f"send at most {limit} characters"
        case "too_long":
            return "bad_length", f"has more than {limit} fields", f"send at most {limit} fields"
        case "string_pattern_mismatch" if value.partition(".")[0] in COMPONENTS:
            fix = "after the component send parts of a-z, 0-9 and _ with dots between"
            return "bad_phase", "is not spelled as a phase", f"{fix}, such as trainer_init.device_init"
        case "string_pattern_mismatch":
            return (
                "unknown_component",
                "belongs to no component",
                f"begin with one of {', '.join(COMPONENTS)}",
            )
        case _:
            # Other versions of pydantic may have other names for a fault: its own words will do.
            code, fix = _OTHERS.get(sort, ("bad_value", "send a legal value"))
            return code, found["msg"], fix
