"""The cursor file of a watcher: what it told already, replaced whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any, Final

_VERSION: Final = 1


class CursorError(ValueError):
    """The cursor file is not one of this watcher. The message says what to do."""


class Cursor:
    """One cursor file.

    Args:
        path: Where it is.
        what: Of which watcher, such as `slurm`: the file of another one is refused.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self._what = what
        self._written = b""

    def load(self) -> dict[str, Any]:
        """Return what was saved last; empty where there is no file. Raises CursorError and OSError."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        try:
            told = json.loads(data)
            if told["version"] != _VERSION or told["watcher"] != self._what:
                raise CursorError(
                    f"{self.path} is the cursor of {told.get('watcher')!r}, not of {self._what!r}; "
                    "name another --cursor"
                )
            state = told["state"]
            if not isinstance(state, dict):
                raise TypeError("state is no object")
        except CursorError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CursorError(
                f"{self.path} is no cursor file ({error}); move it away to begin anew: what was told is told again, "
                "which changes nothing"
            ) from None
        self._written = data
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Replace the file, if something changed. Raises OSError."""
        told = {"version": _VERSION, "watcher": self._what, "state": state}
        data = json.dumps(told, separators=(",", ":")).encode()
        if data == self._written:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(f".{self.path.name}.tmp")
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        self._written = data
