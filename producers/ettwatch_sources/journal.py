"""What was imported from a folder before: one line for each file, written when its events are with the kernel.

A run that is stopped goes on where it stopped: files that are in the journal as they are now are not read again.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

NAME: Final = "journal.jsonl"


class Journal:
    """The journal of a folder of events.

    Args:
        folder: Where it lies; made when the first line is written.
        settings: What the import was told, as one text: a file that was imported with other settings is read again.
    """

    def __init__(self, folder: Path, settings: str) -> None:
        self.path = folder / NAME
        self._settings = settings
        self._done: dict[str, dict[str, Any]] = {}
        self._file: int | None = None
        for line in self._lines():
            try:
                entry = json.loads(line)
                self._done[str(entry["file"])] = entry
            except (ValueError, KeyError, TypeError):
                continue  # the last line of a run that was killed

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text("utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []

    def entry(self, file: str, stat: os.stat_result) -> dict[str, Any] | None:
        """Return what came of a file, if it was read as it is now, with the same settings."""
        entry = self._done.get(file)
        if entry is None or entry.get("settings") != self._settings:
            return None
        return entry if (entry.get("size"), entry.get("mtime_ns")) == (stat.st_size, stat.st_mtime_ns) else None

    def add(self, file: str, stat: os.stat_result, **told: Any) -> None:
        """Note that a file is done. Raises OSError."""
        entry = {"file": file, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "settings": self._settings, **told}
        self._done[file] = entry
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            if os.fstat(self._file).st_size and not self._ends_whole():
                os.write(self._file, b"\n")
        os.write(self._file, json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n")

    def _ends_whole(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
