"""The durable marker: the file that is written last, and without which a folder is no checkpoint. Needs no torch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from ettwatch_trainer.remedies.checkpoints.errors import DamagedError

NAME = "durable.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Marker:
    """What one checkpoint is. `files` has the bytes and the CRC-32 of each file; `serial` counts checkpoints."""

    serial: int
    step: int
    position: int
    world: int
    fingerprint: str
    saved_at: float  # seconds since the Unix epoch
    files: dict[str, tuple[int, int]]
    version: int = VERSION

    @property
    def bytes(self) -> int:
        """The size of the whole checkpoint."""
        return sum(size for size, _ in self.files.values())


def write(folder: Path, marker: Marker, before_rename: Callable[[], None]) -> None:
    """Make the checkpoint in `folder` durable: the marker appears whole or not at all."""
    unfinished = folder / f"{NAME}.tmp"
    with unfinished.open("w") as file:
        json.dump(asdict(marker), file)
        file.flush()
        os.fsync(file.fileno())
    sync(folder)  # the names of the data files, before that of the marker
    before_rename()
    unfinished.replace(folder / NAME)
    sync(folder)
    sync(folder.parent)


def read(folder: Path) -> Marker:
    """The marker of a checkpoint. Raises DamagedError if there is none, or if it is not of this version."""
    path = folder / NAME
    try:
        found = json.loads(path.read_bytes())
        if found["version"] != VERSION:
            raise DamagedError(f"{path} is of version {found['version']}, and {VERSION} is read here")
        files = {str(name): (int(size), int(check)) for name, (size, check) in found["files"].items()}
        marker = Marker(
            int(found["serial"]),
            int(found["step"]),
            int(found["position"]),
            int(found["world"]),
            str(found["fingerprint"]),
            float(found["saved_at"]),
            files,
        )
    except FileNotFoundError:
        raise DamagedError(f"{folder} has no {NAME}: it was never finished") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"{path} cannot be read: {error!r}") from error
    if not marker.files or any(Path(name).name != name for name in marker.files):
        raise DamagedError(f"{path} names no files, or files of other folders")
    return marker


def whole(folder: Path) -> Marker:
    """The marker, if every file is there with its length. Raises DamagedError. The data is read by `streams.check`."""
    marker = read(folder)
    for name, (size, _) in marker.files.items():
        try:
            found = (folder / name).stat().st_size
        except OSError as error:
            raise DamagedError(f"{folder / name} cannot be read: {error.strerror}") from error
        if found != size:
            raise DamagedError(f"{folder / name} has {found} bytes and was written with {size}")
    return marker


def sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
