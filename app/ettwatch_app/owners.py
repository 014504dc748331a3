"""Which ownership file counts, reading it from the disk, and seeing that it changed."""

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from ettwatch_core.nodes import Problem
from ettwatch_core.ownership import Owners, OwnersError, parse_owners

__all__ = ["OwnersChange", "OwnersWatch", "find_owners", "load_owners"]

_MOST_BYTES: Final = 1 << 20
_BUILT_IN: Final = "the built-in owners"
_LOOK_US: Final = 10_000_000


def find_owners(own: Path, env: Mapping[str, str] = os.environ) -> Owners:
    """Read `$ETTWATCH_OWNERS`, else `own` (of the data folder) where it exists, else the default.

    Raises OwnersError where the file is wrong, OSError where `$ETTWATCH_OWNERS` cannot be read.
    """
    return _parsed(*_found(own, env))


def load_owners(path: Path) -> Owners:
    """Read one ownership file. Raises OwnersError or OSError."""
    return _parsed(str(path), _read(path))


class OwnersChange(NamedTuple):
    """What a look at the ownership file brought."""

    owners: Owners | None
    """The rules that count from now on; None where those before go on to count."""
    problem: str | None
    """Why the file cannot be used; each line names file, line and what to do."""


class OwnersWatch:
    """Sees that the ownership file changed, also that another file counts. Told the time.

    A file that is wrong or cannot be read leaves the rules before it as they are, and is told once.

    Args:
        own: The file of the data folder.
        env: Where ETTWATCH_OWNERS is read.
        every_us: How often the file is read, in microseconds.
    """

    def __init__(self, own: Path, env: Mapping[str, str] = os.environ, every_us: int = _LOOK_US) -> None:
        self._own = own
        self._env = env
        self._every_us = every_us
        self._looked_us: int | None = None
        self._seen: tuple[str, bytes] | str | None = None
        self.owners: Owners | None = None
        """The rules that count; None as long as no file could be used."""

    def look(self, now: int) -> OwnersChange | None:
        """Return what changed since the look before; None for nothing, or where that was only just.

        Args:
            now: The time (µs). One that is before the last look counts as one that is due.
        """
        if self._looked_us is not None and 0 <= now - self._looked_us < self._every_us:
            return None
        self._looked_us = now
        try:
            found = _found(self._own, self._env)
        except OSError as error:
            why = f"cannot read the ownership file {error.filename}: {error.strerror}; correct it or ETTWATCH_OWNERS"
            return self._told(why, why)
        except OwnersError as error:  # it is too large to be read
            return self._told(str(error), str(error))
        if found == self._seen:
            return None
        try:
            owners = _parsed(*found)
        except OwnersError as error:
            return self._told(found, str(error))
        self._seen = found
        same = self.owners is not None and (owners.source, owners.rules) == (self.owners.source, self.owners.rules)
        self.owners = owners
        return None if same else OwnersChange(owners, None)

    def _told(self, seen: tuple[str, bytes] | str, problem: str) -> OwnersChange | None:
        before, self._seen = self._seen, seen
        return None if seen == before else OwnersChange(None, problem)


def _found(own: Path, env: Mapping[str, str]) -> tuple[str, bytes]:
    """The file that counts: its name and its bytes. Raises OSError, OwnersError."""
    named = env.get("ETTWATCH_OWNERS")
    if named:
        return named, _read(Path(named))
    if own.is_file():
        return str(own), _read(own)
    return _BUILT_IN, files("ettwatch_app").joinpath("owners.yaml").read_bytes()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        size = path.stat().st_size
        raise OwnersError(str(path), [Problem(1, f"the file has {size:,} bytes; at most {_MOST_BYTES:,} are read")])
    return raw


def _parsed(source: str, raw: bytes) -> Owners:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise OwnersError(source, [Problem(line, "not UTF-8; save the file as UTF-8")]) from None
    return parse_owners(text, source)
