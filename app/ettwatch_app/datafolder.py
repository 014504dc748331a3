"""The data folder: where it is, who owns it, and how to open its ClickHouse.

One process owns a data folder at a time (the embedded engine allows no more). `ettwatch up` owns it while it
lives and serves ClickHouse's HTTP protocol; other commands then go through that front. When no `up` lives, they
own the folder themselves for as long as they need it.

Ownership is an flock on `DIR/up.lock`. The kernel drops it with the process, so a lock left by `kill -9` is no
obstacle.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import click

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store

DEFAULT_FOLDER: Final = ".ettwatch"

_WAIT_S: Final = 10.0
"""How long a short command waits for another one, or for an `up` that is just starting."""


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


@dataclass(frozen=True, slots=True)
class UpInfo:
    """What a living `up` says about itself in `up.json`.

    Attributes:
        pid: Its process id.
        url: Where it serves ClickHouse's HTTP protocol, such as `http://127.0.0.1:8123`; None if it does not.
        started: When it started, RFC 3339.
        spools: The folders that it follows.
    """

    pid: int
    url: str | None
    started: str
    spools: tuple[str, ...]


def locate(folder: str | os.PathLike[str] | None = None) -> DataFolder:
    """Return the data folder: the one given, else `$ETTWATCH_DATA`, else `./.ettwatch`. Creates nothing."""
    chosen = folder if folder is not None else os.environ.get("ETTWATCH_DATA") or DEFAULT_FOLDER
    return DataFolder(Path(chosen).expanduser().absolute())


def spools(folder: DataFolder, given: Sequence[str | os.PathLike[str]] = ()) -> tuple[Path, ...]:
    """Return the spool folders: those given, else `$ETTWATCH_SPOOL`, else the `spool` in the data folder."""
    named = [Path(p) for p in given] or [Path(os.environ.get("ETTWATCH_SPOOL") or folder.spool)]
    return tuple(dict.fromkeys(p.expanduser().absolute() for p in named))


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
        raise FolderError(_unwritable(folder, e)) from e


def _unwritable(folder: DataFolder, error: OSError) -> str:
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
            raise FolderError(_unwritable(folder, e)) from e
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
            raise FolderError(_unwritable(folder, e)) from e

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


def _owner(fd: int) -> str:
    try:
        told = json.loads(os.pread(fd, 4096, 0))
        return f"`{told['who']}` (process {told['pid']})"
    except (ValueError, KeyError, TypeError, OSError):
        return "another process"


def announce(folder: DataFolder, info: UpInfo) -> None:
    """Write `up.json`, whole or not at all."""
    draft = folder.up_json.with_suffix(".tmp")
    told = {"pid": info.pid, "url": info.url, "started": info.started, "spools": list(info.spools)}
    draft.write_text(json.dumps(told, indent=2) + "\n")
    draft.replace(folder.up_json)


def retract(folder: DataFolder) -> None:
    """Remove `up.json`."""
    folder.up_json.unlink(missing_ok=True)


def living_up(folder: DataFolder) -> UpInfo | None:
    """Return what the `up` that owns the folder says about itself; None if none lives or it is still starting."""
    try:
        told = json.loads(folder.up_json.read_text())
        info = UpInfo(int(told["pid"]), told["url"], str(told["started"]), tuple(told["spools"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return info if _is_owned(folder) else None


def _is_owned(folder: DataFolder) -> bool:
    try:
        fd = os.open(folder.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # A shared lock, so that several who ask at once do not take each other for an owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


@contextlib.contextmanager
def open_store(
    folder: DataFolder, *, create_missing: bool = False, who: str = "ettwatch", wait_s: float = _WAIT_S
) -> Iterator["Store"]:
    """Open the folder's ClickHouse: through the front of the `up` that lives there, else directly.

    A directly opened store has all migrations applied, and the folder is owned until the block is left.

    Args:
        folder: The data folder.
        create_missing: Make a new, empty folder instead of refusing one that does not exist.
        who: The command, named to those who find the folder in use.
        wait_s: How long (seconds) to wait for another short command, or for an `up` that is starting.

    Raises:
        FolderInUse: Another process owns the folder and serves no HTTP.
        FolderError: There is no data folder, or it cannot be opened.
    """
    import ettwatch_clickhouse as sink

    if not create_missing and not folder.root.is_dir():
        raise FolderError(
            f"there is no data folder at {folder.root}; start `ettwatch up` or `ettwatch demo` there first, "
            "or name the right one with --data or ETTWATCH_DATA"
        )
    deadline = time.monotonic() + wait_s
    while True:
        info = living_up(folder)
        try:
            if info is not None:
                if info.url is None:
                    raise FolderInUse(
                        f"the data folder {folder.root} is in use by `ettwatch up` (process {info.pid}), which "
                        "serves no HTTP (--listen off); stop it, or start it with --listen",
                        by_up=True,
                    )
                owned = None
                store = sink.connect(info.url)
            else:
                owned = Ownership(folder, who)
                try:
                    store = sink.open_embedded(folder.clickhouse)
                    sink.migrate(store)
                except BaseException:
                    owned.release()
                    raise
        except FolderInUse:
            if info is not None or time.monotonic() >= deadline:
                raise
            time.sleep(0.1)
            continue
        except sink.StoreError as e:
            raise FolderError(f"cannot open the ClickHouse in {folder.root}: {e}") from e
        break
    try:
        yield store
    finally:
        try:
            store.close()
        finally:
            if owned is not None:
                owned.release()
