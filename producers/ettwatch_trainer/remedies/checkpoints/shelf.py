"""The folder of one job's checkpoints: what is in it, what comes next, what may go. Needs no torch."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ettwatch_trainer.remedies.checkpoints import marker as markers
from ettwatch_trainer.remedies.checkpoints.errors import DamagedError
from ettwatch_trainer.remedies.checkpoints.marker import Marker

CHECKPOINT = re.compile(r"(\d{6,})-step-\d+-[0-9a-f]{8}")
PIN = ".pin-"


@dataclass(frozen=True, slots=True)
class Found:
    """A durable checkpoint. `position` is in samples, `world` the ranks that wrote it, `serial` its place in the order.

    `resharded`: it was loaded by another number of ranks. `passed_over` says of newer ones why they were not taken.
    `durable_after_s`: of one that was just saved, how long after the call of `save` it was durable.
    """

    path: Path
    step: int
    position: int
    bytes: int
    world: int
    serial: int
    fingerprint: str = ""
    resharded: bool = False
    passed_over: tuple[str, ...] = ()
    durable_after_s: float = 0.0

    @classmethod
    def of(cls, path: Path, marker: Marker, passed_over: tuple[str, ...] = ()) -> Found:
        """Put what a marker says into words for the user."""
        return cls(
            path,
            marker.step,
            marker.position,
            marker.bytes,
            marker.world,
            marker.serial,
            marker.fingerprint,
            passed_over=passed_over,
        )


class Shelf:
    """The checkpoints in one folder. Reading changes nothing; only the rank that writes calls the rest."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self._keep = folder, keep

    def paths(self) -> list[Path]:
        """Every folder that is a checkpoint or was to become one, newest first."""
        try:
            found = [path for path in self.folder.iterdir() if CHECKPOINT.fullmatch(path.name)]
        except FileNotFoundError:
            return []
        return sorted(found, key=lambda path: (int(path.name.partition("-")[0]), path.name), reverse=True)

    def newest(self, without: frozenset[str] = frozenset()) -> Found | None:
        """The newest durable checkpoint whose files are all there with their lengths, except those named."""
        passed: list[str] = []
        for path in self.paths():
            if path.name in without or not (path / markers.NAME).exists():
                continue  # not taken, or never finished: that is no damage
            try:
                return Found.of(path, markers.whole(path), tuple(passed))
            except DamagedError as error:
                passed.append(str(error))
        return None

    def durable(self) -> list[Path]:
        """Every folder with a marker, damaged or not, newest first."""
        return [path for path in self.paths() if (path / markers.NAME).exists()]

    def begin(self, step: int) -> tuple[Path, int]:
        """Make the folder of the next checkpoint; its path and serial. Leftovers of killed saves go first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = self.paths()
        for path in paths:
            if not (path / markers.NAME).exists():
                shutil.rmtree(path, ignore_errors=True)
        serial = 1 + max((int(path.name.partition("-")[0]) for path in paths), default=0)
        # The last part keeps two attempts apart that both believe to be the only one.
        made = self.folder / f"{serial:06d}-step-{step}-{uuid.uuid4().hex[:8]}"
        made.mkdir()
        return made, serial

    def retain(self, at: Callable[[str], None]) -> None:
        """Remove what is older than the newest `keep` whole ones. Those in use by a publisher (pinned) stay.

        A damaged one counts for nothing, so the only good one always stays, and goes once a newer one is whole.
        """
        good = 0
        for path in self.durable():
            try:
                markers.whole(path)
                good += 1
                surplus = good > self._keep
            except DamagedError:
                surplus = good > 0
            if surplus and not any(path.glob(f"{PIN}*")):
                # The marker first: half of a checkpoint must not look like one.
                (path / markers.NAME).unlink(missing_ok=True)
                at("retention")
                shutil.rmtree(path, ignore_errors=True)


def pin(path: Path, name: str) -> None:
    """Keep a checkpoint from being removed, until `unpin` with the same name. Raises OSError if it is gone."""
    (path / f"{PIN}{name}").touch()


def unpin(path: Path, name: str) -> None:
    """Let a checkpoint go; nothing happens if it is gone already."""
    (path / f"{PIN}{name}").unlink(missing_ok=True)
