"""The paths in a data folder, and who owns it: one process at a time."""

import contextlib
import errno
import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import click


class FolderError(click.ClickException):
    """The data folder cannot be used. The message says why and what to do; the exit code is 2."""

    exit_code = 2


class FolderInUse(FolderError):
    """Another process owns the data folder.

    Attributes:
        by_up: It is an `ettwatch up`, which keeps it for long; others give it back soon.
    """

    def __init__(self, message: str, *, by_up: bool = False) -> None:
        super().__init__(message)
        self.by_up = by_up


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The paths inside one data folder."""

    root: Path

    @property
    def clickhouse(self) -> Path:
        """The embedded engine's own folder."""
        return self.root / "clickhouse"

    @property
    def state(self) -> Path:
        """The places in the spool files and the fold states (SQLite)."""
        return self.root / "state.sqlite"

    @property
    def spool(self) -> Path:
        """The default spool folder."""
        return self.root / "spool"

    @property
    def rejected(self) -> Path:
        """The dead letters: one JSON object for each refused line or event."""
        return self.root / "rejected.jsonl"

    @property
    def lock(self) -> Path:
        """The file whose flock is the ownership of the folder."""
        return self.root / "up.lock"

    @property
    def up_json(self) -> Path:
        """What a living `up` says about itself."""
        return self.root / "up.json"

    @property
    def owners(self) -> Path:
        """The ownership file, unless `ETTWATCH_OWNERS` names another."""
        return self.root / "owners.yaml"


def create(folder: DataFolder) -> None:
    """Create the folder where it is missing, and prove that it can be written to.

    Raises:
        FolderError: It cannot be created or written to.
    """
    try:
        folder.root.mkdir(parents=True, exist_ok=True)
        probe = folder.root / f".probe.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as e:
        raise FolderError(unwritable(folder, e)) from e


def unwritable(folder: DataFolder, error: OSError) -> str:
    """Return what to tell of a data folder that refuses a write."""
    return (
        f"cannot write to the data folder {folder.root}: {error.strerror or error}; "
        "give the user the right to write there, or name another folder with --data or ETTWATCH_DATA"
    )


class Ownership:
    """The right to open a data folder's engine, held by one process at a time. A context manager.

    Args:
        folder: The data folder; it is created where it is missing.
        who: Named to those who find the folder in use, such as `ettwatch up`.

    Raises:
        FolderInUse: Another process owns it.
        FolderError: It cannot be written to.
    """

    def __init__(self, folder: DataFolder, who: str) -> None:
        create(folder)
        self._folder = folder
        try:
            self._fd = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as e:
            raise FolderError(unwritable(folder, e)) from e
        try:
            _take(self._fd)
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps({"pid": os.getpid(), "who": who}).encode(), 0)
        except OSError as e:
            owner = _owner(self._fd)
            os.close(self._fd)
            if e.errno in (errno.EAGAIN, errno.EACCES):
                raise FolderInUse(
                    f"the data folder {folder.root} is in use by {owner}; "
                    "stop it first, or name another folder with --data or ETTWATCH_DATA",
                    by_up=owner.startswith("`ettwatch up`"),
                ) from None
            raise FolderError(unwritable(folder, e)) from e

    def release(self) -> None:
        """Give the folder back. Does nothing the second time."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.release()


def _take(fd: int) -> None:
    # Those who only ask whether the folder is owned hold the lock for a moment: one refusal proves nothing.
    for _ in range(4):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(0.05)
    return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def owner_of(folder: DataFolder) -> int | None:
    """Return the id of the process that owns the folder; None if none does."""
    try:
        fd = os.open(folder.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # A shared lock, so that several who ask at once do not take each other for an owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _told(fd)[0]
    finally:
        os.close(fd)
    return None


def _owner(fd: int) -> str:
    process, who = _told(fd)
    return "another process" if process is None else f"`{who}` (process {process})"


def _told(fd: int) -> tuple[int | None, str]:
    try:
        told = json.loads(os.pread(fd, 4096, 0))
        return int(told["pid"]), str(told["who"])
    except (ValueError, KeyError, TypeError, OSError):
        return None, ""
