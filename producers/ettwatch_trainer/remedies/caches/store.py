"""Where archives are kept: a folder, or what fsspec opens. Bounded: the ones unused for longest go first."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]

from ettwatch_trainer.remedies.writing import write_whole

ARCHIVE = ".ettcache"
USED = ".used"
PART = ".part"
# A file that was being written when its writer died is in nobody's way for this long.
LEFT_OVER_S = 3600.0


class Store:
    """Archives by name. Every call may raise what the store raises."""

    def __init__(self, url: str, now: Callable[[], float] = time.time) -> None:
        files, root = fsspec.core.url_to_fs(url)
        self._files: Any = files
        self._root = str(root).rstrip("/")
        self._local = "file" in ((files.protocol,) if isinstance(files.protocol, str) else files.protocol)
        self._now = now

    def read(self, name: str, end: int | None = None) -> bytes | None:
        """An archive, or its first `end` bytes; None if there is none."""
        try:
            data: bytes = self._files.cat_file(self._path(name + ARCHIVE), start=None, end=end)
        except FileNotFoundError:
            return None
        return data

    def write(self, name: str, data: bytes) -> None:
        """Put an archive there whole: a reader sees the old one or the new one."""
        if self._local:
            write_whole(Path(self._path(name + ARCHIVE)), data)
            return
        passing = self._path(f"{name}.{int(self._now())}.{uuid.uuid4().hex}{PART}")
        self._files.makedirs(self._root, exist_ok=True)
        try:
            self._files.pipe_file(passing, data)
            self._files.mv(passing, self._path(name + ARCHIVE))
        except BaseException:
            if self._files.exists(passing):
                self._files.rm_file(passing)
            raise

    def used(self, name: str) -> None:
        """Note that an archive was used now."""
        self._files.makedirs(self._root, exist_ok=True)
        self._files.pipe_file(self._path(name + USED), repr(self._now()).encode())

    def names(self) -> list[str]:
        """The archives, the one that was used last first."""
        return sorted(self._sizes(), key=self._used_at, reverse=True)

    def trim(self, limit: int, keep: str) -> list[str]:
        """Remove what was unused for longest until at most `limit` bytes are left; `keep` stays. Returns the names."""
        self._sweep()
        sizes = self._sizes()
        removed = []
        for name in reversed(self.names()):
            if sum(sizes.values()) <= limit:
                break
            if name != keep:
                for path in (name + ARCHIVE, name + USED):
                    try:
                        self._files.rm_file(self._path(path))
                    except FileNotFoundError:  # another job has removed it
                        continue
                sizes.pop(name, None)
                removed.append(name)
        return removed

    def _sizes(self) -> dict[str, int]:
        return {path.removesuffix(ARCHIVE): size for path, size in self._list() if path.endswith(ARCHIVE)}

    def _list(self) -> list[tuple[str, int]]:
        try:
            self._files.invalidate_cache()
            found = self._files.ls(self._root, detail=True)
        except FileNotFoundError:
            return []
        return [
            (str(item["name"]).rpartition("/")[2], int(item["size"] or 0)) for item in found if item["type"] == "file"
        ]

    def _used_at(self, name: str) -> float:
        try:
            return float(self._files.cat_file(self._path(name + USED)))
        except (FileNotFoundError, ValueError):
            return 0.0

    def _sweep(self) -> None:
        """Remove what writers that died have left."""
        for name, _ in self._list():
            if not name.endswith(PART):
                continue
            try:
                began = (Path(self._root) / name).stat().st_mtime if self._local else float(name.split(".")[1])
                if self._now() - began > LEFT_OVER_S:
                    self._files.rm_file(self._path(name))
            except (FileNotFoundError, ValueError, IndexError):  # gone, or not ours
                continue

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
