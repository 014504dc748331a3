"""From Python values to the JSON of the wire: what could not be sent is made sendable, never refused."""

from collections.abc import Mapping
from json import JSONEncoder
from math import isfinite
from typing import Final

from ettwatch.log import pass_on
from ettwatch.names import MAX_AMOUNT, MAX_JOB_CHARS, MAX_NAME_CHARS

MAX_TEXT_CHARS: Final = 2000
MAX_ATTRS: Final = 64
MAX_DEPTH: Final = 4
MAX_ITEMS: Final = 100

_encode = JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def members(fields: Mapping[str, object]) -> str:
    """Return the members of a JSON object, each with a comma behind it; fields that are None are left out."""
    # The encoder is quick with a text and slow to start on anything that holds others: so one by one.
    return "".join(
        [
            f'"{name}":{value if type(value) is int else _encode(value)},'
            for name, value in fields.items()
            if value is not None
        ]
    )


def tidy_text(value: str, limit: int = MAX_TEXT_CHARS) -> str:
    """Return `value` as text that any JSON reader takes: no halves of surrogate pairs, at most `limit` characters.

    Bytes of the environment that are no UTF-8 become question marks.
    """
    return value[:limit].encode("utf-8", "replace").decode("utf-8")


def shown(value: object) -> str:
    """Return a value for a message. What is no plain one is named by its type: to print it may wait for a device."""
    return repr(value)[:200] if value is None or type(value) in (str, int, float, bool) else f"<{type(value).__name__}>"


def plain(value: object, limit: int = MAX_TEXT_CHARS) -> str:
    """Return a value as text, one that is no plain one by the name of its type."""
    return tidy_text(value if isinstance(value, str) else shown(value), limit)


def tidy_job(name: str) -> str:
    """Return `name` as the name of a job. One that has to be changed ends in a hash of the whole.

    So two jobs stay two, even if they differ only in what is cut off, or in bytes that are no UTF-8.
    """
    if tidy_text(name, MAX_JOB_CHARS) == name:
        return name
    import hashlib  # seldom needed, and slow to import

    mark = f"-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return tidy_text(name, MAX_JOB_CHARS - len(mark)) + mark


def _tidy(value: object, depth: int) -> object:
    match value:
        case None | bool():
            return value
        case int():
            return int(value) if -MAX_AMOUNT <= value <= MAX_AMOUNT else str(value)[:80]
        case float():
            return float(value) if isfinite(value) else str(value)
        case str():
            return tidy_text(value)
        case dict() if depth < MAX_DEPTH:
            items = list(value.items())[:MAX_ITEMS]
            return {plain(key, MAX_NAME_CHARS): _tidy(item, depth + 1) for key, item in items}
        case list() | tuple() if depth < MAX_DEPTH:
            return [_tidy(item, depth + 1) for item in value[:MAX_ITEMS]]
        case _:  # not str(value): printing a tensor would wait for its device
            return f"<{type(value).__name__}>"


def tidy_attrs(attrs: Mapping[str, object] | None) -> dict[str, object] | None:
    """Return attributes as plain JSON values, None for none. A value of an unknown type becomes its type's name.

    So do attributes that are none: whatever they are, they must not cost the phase that they belong to.
    """
    if attrs is None:
        return None
    try:
        items = list(attrs.items())[:MAX_ATTRS]
        return {plain(key, MAX_NAME_CHARS): _tidy(value, 0) for key, value in items} or None
    except Exception as error:
        pass_on(error)
        return {"attrs": f"<{type(attrs).__name__}>"}
