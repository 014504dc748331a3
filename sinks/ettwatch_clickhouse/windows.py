"""Windows as rows: of each the greatest version counts, in a batch as in the table. No I/O."""

from typing import Final, TypeAlias

from ettwatch_clickhouse.rows import Row
from ettwatch_clickhouse.writeids import WriteIds
from ettwatch_schemas import Window

__all__ = ["WINDOWS", "WindowBatch"]

_KEY: Final = ("scope", "name", "length", "end")
_FIGURES: Final = tuple(name for name in Window.model_fields if name not in (*_KEY, "v", "version"))
WINDOWS: Final = (*_KEY, "version", "written", *_FIGURES)
"""Columns of the table, in the order of the values."""

_Key: TypeAlias = tuple[object, ...]


class WindowBatch:
    """Windows on their way into the table."""

    def __init__(self) -> None:
        self._windows: dict[_Key, Window] = {}

    def take(self, window: Window) -> None:
        """Take in a window."""
        key = (window.scope, window.name, window.length, window.end)
        before = self._windows.get(key)
        if before is None or window.version >= before.version:
            self._windows[key] = window

    def rows(self, ids: WriteIds) -> list[Row]:
        """Return the rows; `ids` number the writes."""
        return [
            (*key, window.version, ids.next(), *(getattr(window, name) for name in _FIGURES))
            for key, window in self._windows.items()
        ]
