"""The page: its built files, held in memory, so that no request can name a file of the machine."""

import hashlib
import mimetypes
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Asset", "Assets"]

_HASHED: Final = re.compile(r".*[.-][0-9A-Za-z]{8,}\.\w+")
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".map": "application/json",
    ".webmanifest": "application/manifest+json",
}
_INDEX: Final = "index.html"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file.

    Attributes:
        body: What is in it.
        kind: Its media type.
        lasting: Its name changes with what is in it.
        tag: Changes with what is in it.
    """

    body: bytes
    kind: str
    lasting: bool
    tag: str


class Assets:
    """The files of a folder, read anew when the folder changed. A folder that is not there is empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._seen: tuple[tuple[str, int, int], ...] | None = None
        self._files: Mapping[str, Asset] = {}

    def get(self, path: str) -> Asset | None:
        """Return the file of a path, such as `assets/main-1a2b3c4d.js`; None if there is none."""
        return self._known().get(path)

    def page(self) -> Asset | None:
        """Return the page; None where it was not built."""
        return self._known().get(_INDEX)

    def _known(self) -> Mapping[str, Asset]:
        with self._lock:
            found = sorted(path for path in self._folder.rglob("*") if path.is_file()) if self._folder.is_dir() else []
            seen = tuple((str(path), (stat := path.stat()).st_mtime_ns, stat.st_size) for path in found)
            if seen != self._seen:
                self._files = {path.relative_to(self._folder).as_posix(): _read(path) for path in found}
                self._seen = seen
            return self._files


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Asset(body, kind, _HASHED.fullmatch(path.name) is not None, hashlib.sha256(body).hexdigest()[:32])
