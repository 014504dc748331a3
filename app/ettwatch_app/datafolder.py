"""The data folder: where it is, who owns it, and how to open its ClickHouse.

One process owns a data folder at a time (the embedded engine allows no more). `ettwatch up` owns it while it
lives and serves ClickHouse's HTTP protocol; other commands then go through that front. When no `up` lives, they
own the folder themselves for as long as they need it.

Ownership is an flock on `DIR/up.lock`. The kernel drops it with the process, so a lock left by `kill -9` is no
obstacle.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ettwatch_app.up.ownership import DataFolder, FolderError, FolderInUse, Ownership, create, owner_of, unwritable

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store

__all__ = [
    "DataFolder",
    "FolderError",
    "FolderInUse",
    "Ownership",
    "UpInfo",
    "announce",
    "create",
    "living_up",
    "locate",
    "open_store",
    "retract",
    "spools",
]

DEFAULT_FOLDER: Final = ".ettwatch"

_WAIT_S: Final = 10.0
"""How long a short command waits for another one, or for an `up` that is just starting."""


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


def announce(folder: DataFolder, info: UpInfo) -> None:
    """Write `up.json`, whole or not at all.

    Raises:
        FolderError: It cannot be written.
    """
    draft = folder.up_json.with_suffix(".tmp")
    told = {"pid": info.pid, "url": info.url, "started": info.started, "spools": list(info.spools)}
    try:
        draft.write_text(json.dumps(told, indent=2) + "\n")
        draft.replace(folder.up_json)
    except OSError as e:
        raise FolderError(unwritable(folder, e)) from e


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
    return info if owner_of(folder) == info.pid else None


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
