"""JSON values with parts replaced by odd ones."""

from typing import Any

from hypothesis import strategies as st

ODD_VALUES: list[Any] = [None, True, 0, -1, 2**70, 1e308, "", "x", "0", "\u00b2", "9" * 5000, [], [[]], {}, {"a": 1}]
ODD_VALUES += [1762164000, "2025-11-03T10:00:00Z", "a" * 3000]
ODD = st.sampled_from(ODD_VALUES)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a value."""
    found = [at]
    if isinstance(value, dict):
        found += [path for key, inner in value.items() for path in places(inner, (*at, key))]
    elif isinstance(value, list):
        found += [path for key, inner in enumerate(value) for path in places(inner, (*at, key))]
    return found


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy
