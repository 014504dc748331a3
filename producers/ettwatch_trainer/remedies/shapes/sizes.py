"""The sizes that inputs had when a function was last compiled: torch keeps them to find out what is dynamic.

A guard names only the first size that did not fit. Where two inputs grow together, as all of a batch do, the other
would be found one run later; from the sizes all are found at once.
"""

from __future__ import annotations

import re
from types import CodeType

# By function (file, line, name) and source; None where torch has found out itself that a size changes.
Sizes = dict[tuple[str, int, str], dict[str, tuple[int | None, ...]]]

_LOCAL = re.compile(r"^L\['(\w+)'\]")


def place(code: CodeType) -> tuple[str, int, str]:
    """How a function is named among sizes."""
    return (code.co_filename, code.co_firstlineno, code.co_name)


def now() -> Sizes:
    """The sizes as they are known now; nothing where torch does not tell. Its `pgo` module is not documented."""
    try:
        from torch._dynamo.pgo import get_code_state

        states = get_code_state().items()
    except Exception:
        return {}
    return {
        (where.filename, where.firstlineno, where.name): {
            _LOCAL.sub(r"\1", source): tuple(size if type(size) is int else None for size in entry.size)
            for source, entry in state.automatic_dynamic.items()
            if isinstance(entry.size, tuple) and _LOCAL.match(source) and not source.startswith("L['self']")
        }
        for where, state in states
    }


def changed(
    before: dict[str, tuple[int | None, ...]], after: dict[str, tuple[int | None, ...]]
) -> list[tuple[str, int, str]]:
    """Inputs and dimensions whose size is not what it was, with both for people. A new number of dimensions is none."""
    return [
        (source, dim, f"size {was} at one compilation and {is_now or 'another'} at the next")
        for source, sizes in after.items()
        if len(sizes) == len(before.get(source, ()))
        for dim, (was, is_now) in enumerate(zip(before[source], sizes, strict=True))
        if was is not None and was != is_now
    ]
