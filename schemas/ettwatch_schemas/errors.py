"""The errors that decoding raises, and the words they use."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "empty": "a message of no bytes, or an array without events",
        "too_large": "more bytes than an event or a message may have",
        "not_utf8": "bytes that are not UTF-8",
        "bad_json": "no JSON, or JSON that not everyone reads alike (half a surrogate pair, nested too deep)",
        "not_finite": "NaN or Infinity, which JSON does not know, or a number too large to be finite",
        "not_an_object": "JSON, but no object",
        "unsupported_version": "a version of the wire format other than 1",
        "unknown_kind": "a kind that version 1 does not know",
        "missing_field": "a field that this kind needs is not there",
        "bad_type": "a value of the wrong JSON type",
        "bad_value": "none of the values that the field may have",
        "bad_length": "a text or an object that is empty, too long or nested too deep",
        "out_of_range": "a number below or above the limits of the field",
        "wrong_time_unit": "a time in seconds, milliseconds or nanoseconds",
        "unknown_component": "a phase whose first part is none of the six components",
        "bad_phase": "a phase of a known component that is not spelled as a dotted lower-case name",
        "mixed_jobs": "an event in an array whose first good event is of another job",
    }
)
"""Every code of a DecodeError with its meaning. Codes are stable: scripts may rely on them."""

_SHOWN: Final = 60


class DecodeError(ValueError):
    """What could not be decoded: where, what was there, why it is wrong, what to do.

    `code` is one of CODES. `field` is the dotted path of the field, or None where the whole event is meant.
    `value` is what stood there, shortened to a line, or empty where nothing did. `index` is the place in the
    array, from 0, or None outside of one. `str()` is one line.
    """

    def __init__(
        self,
        code: str,
        reason: str,
        fix: str,
        field: str | None = None,
        value: str = "",
        index: int | None = None,
    ) -> None:
        super().__init__(code, reason, fix, field, value, index)
        self.code = code
        self.reason = reason
        self.fix = fix
        self.field = field
        self.value = value
        self.index = index

    def __str__(self) -> str:
        place = "" if self.index is None else f"[{self.index}] "
        subject = f"{self.field}: {self.value}" if self.field and self.value else self.field or self.value
        return f"{place}{subject} {self.reason}; {self.fix}"

    def at(self, index: int) -> "DecodeError":
        """Return the same error with its place in the array."""
        return DecodeError(self.code, self.reason, self.fix, self.field, self.value, index)


class UpdateError(ValueError):
    """Bytes or headers that are no update, summary or dead letter as a worker writes them. `str()` is one line.

    It says which message, which field of it (`phases update: open[3].end: …`), and what is wrong with that.
    """


def shorten(value: object) -> str:
    """Return a JSON value as one short line."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > 128:
            return f"an integer of {value.bit_length()} bits"
        case str():
            return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}…"
        case dict():
            return "{…}" if value else "{}"
        case list():
            return "[…]" if value else "[]"
        case _:
            return str(value)


def is_not(value: object, wanted: str) -> str:
    """Say that a JSON value is not what was wanted, naming its type where its look does not tell."""
    match value:
        case None | bool():
            return f"is not {wanted}"
        case int():
            found = "an integer"
        case float():
            found = "a float"
        case str():
            found = "a string"
        case dict():
            found = "an object"
        case _:
            found = "an array"
    return f"is {found}, not {wanted}"
