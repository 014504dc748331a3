"""A request to publish, and how far it is: small JSON files that any process can read. Needs no torch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

VERSION = 1
FOLDER = ".requests"

State = Literal["pending", "working", "done", "failed"]


class PublishError(Exception):
    """Something cannot be published. The text says what, why, and what to do. Trying again would not help."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be published. `factory` (`module:function`) is called with `arguments`; modules are in `search`."""

    id: str
    checkpoint: Path
    step: int
    position: int
    factory: str
    arguments: dict[str, Any]
    entry: str
    out: Path
    tolerance: float
    aot: bool
    job: str | None
    tries: int
    search: list[str] = field(default_factory=list)
    version: int = VERSION

    @property
    def name(self) -> str:
        """What the published folder is called."""
        return f"step-{self.step:08d}-{self.id}"

    @property
    def path(self) -> Path:
        """The file of this request."""
        return self.out / FOLDER / f"{self.id}.json"


@dataclass(frozen=True, slots=True)
class Status:
    """How far a request is. `tries` counts how often it was begun; `reason` says why it failed."""

    state: State
    tries: int = 0
    published: Path | None = None
    reason: str | None = None


def write(request: Request) -> Path:
    """Put a request down; it is on disk when this returns."""
    request.path.parent.mkdir(parents=True, exist_ok=True)
    _put(request.path, asdict(request))
    return request.path


def read(path: Path) -> Request:
    """A request. Raises PublishError if it cannot be read."""
    try:
        found = json.loads(path.read_bytes())
        if found["version"] != VERSION:
            raise PublishError(f"{path} is of version {found['version']}, and {VERSION} is read here")
        known = {item.name: found[item.name] for item in fields(Request)}
        return Request(**{**known, "checkpoint": Path(known["checkpoint"]), "out": Path(known["out"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PublishError(f"{path} is no request to publish: {error!r}") from error


def pending(out: Path) -> list[Path]:
    """The requests below a folder that are neither done nor failed, oldest first."""
    paths = [path for path in (out / FOLDER).glob("*.json") if "." not in path.stem]
    paths.sort(key=lambda path: (path.stat().st_mtime, path.name))
    return [path for path in paths if status(path).state in ("pending", "working")]


def status(path: Path) -> Status:
    """How far a request is; pending if nobody has begun, or what was said of it cannot be read."""
    try:
        found = json.loads(_status_path(path).read_bytes())
        published = found["published"]
        return Status(found["state"], int(found["tries"]), published and Path(published), found["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return Status("pending")


def tell(path: Path, said: Status) -> None:
    """Put down how far a request is."""
    _put(_status_path(path), asdict(said))


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Whether nobody else works on this request; while the block runs, nobody begins to.

    The system lets go of the lock when its process dies, however it dies.
    """
    import fcntl

    with path.with_suffix(".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _status_path(path: Path) -> Path:
    return path.with_suffix(".status.json")


def _put(path: Path, value: Mapping[str, Any]) -> None:
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with unfinished.open("w") as file:
        json.dump(value, file, default=str, indent=2)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
