"""A Store over the embedded engine (chDB), which keeps its data in a folder of this machine.

The engine allows one process for a folder and one folder for a process. Threads are welcome; a process must not fork
while the folder is open.
"""

import fcntl
import os
import re
import uuid
from pathlib import Path
from typing import Any, Final

import clickhouse_connect
from clickhouse_connect.driver.exceptions import ClickHouseError

from ettwatch_clickhouse.address import DATABASE
from ettwatch_clickhouse.client import ClientStore
from ettwatch_clickhouse.errors import DataFolderInUse, DataFolderNotWritable, StoreError, reason

__all__ = ["EmbeddedStore", "open_embedded"]

_SETTINGS: Final = {
    # Dates without a zone mean the same on every machine.
    "session_timezone": "UTC",
    # As a server has it; the engine by itself takes any word for an expression to select.
    "implicit_select": "0",
}


class EmbeddedStore(ClientStore):
    """A Store over a folder. More handles on the same engine are to be had for other threads.

    Attributes:
        folder: Where the data lie.
    """

    def __init__(self, client: Any, folder: Path) -> None:
        super().__init__(client, str(folder))
        self.folder = folder

    def handle(self) -> Any:
        """Return a fresh chDB connection to the engine, with settings and a database of its own. To be closed."""
        import chdb

        connection: Any = chdb.connect(str(self.folder))  # type: ignore[no-untyped-call]
        connection.query("; ".join(f"SET {name} = '{value}'" for name, value in _SETTINGS.items()))
        return connection


def open_embedded(folder: Path) -> EmbeddedStore:
    """Open the ClickHouse in a folder, which is created where it is missing.

    Raises:
        DataFolderInUse: Another process has it open.
        DataFolderNotWritable: It cannot be created or written to.
        StoreError: This process has another folder open, or what lies there is no ClickHouse.
    """
    folder = Path(os.path.realpath(folder))
    _prepare(folder)
    _refuse_shared(folder)
    try:
        client = clickhouse_connect.get_client(
            interface="chdb", path=str(folder), tz_mode="aware", settings=dict(_SETTINGS)
        )
    except ClickHouseError as e:
        raise _open_error(folder, str(e)) from e
    store = EmbeddedStore(client, folder)
    try:
        store.command(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        client.database = DATABASE
    except BaseException:
        store.close()
        raise
    return store


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{uuid.uuid4().hex}"
        probe.touch()
        probe.unlink()
    except OSError as e:
        raise DataFolderNotWritable(
            f"cannot write to the data folder {folder}: {e.strerror or e}; give the user the right to write there, "
            "or choose another folder"
        ) from e


def _refuse_shared(folder: Path) -> None:
    """Tell who has the folder open, before the engine fails without a reason."""
    try:
        fd = os.open(folder / "status", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        owner = re.search(rb"PID:\s*(\d+)", os.read(fd, 4096))
        if owner and int(owner[1]) == os.getpid():
            return
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = f"process {int(owner[1])}" if owner else "another process"
        raise DataFolderInUse(_in_use(folder, who)) from None
    finally:
        os.close(fd)


def _in_use(folder: Path, who: str) -> str:
    return f"the data folder {folder} is in use by {who}; stop it, or talk to its HTTP address instead"


def _open_error(folder: Path, message: str) -> StoreError:
    other = re.search(r"already initialized with path '([^']*)'", message)
    if other:
        return StoreError(
            f"cannot open the data folder {folder}: this process has {other[1]} open, and the embedded engine allows "
            "one folder for a process; close the other store first"
        )
    if re.search(r"Error initializing EmbeddedServer: ?\. \(", message):
        # The folder is ours to write to, so the lock is all that remains: someone was faster.
        return DataFolderInUse(_in_use(folder, "another process"))
    return StoreError(f"cannot open the data folder {folder}: {reason(message)}; is it the folder of another program?")
