"""The data folder for commands that read what is there: they wait for nobody for ever, and make no folder."""

import contextlib
import http.client
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ettwatch_app.commands._shared import Refused
from ettwatch_app.datafolder import DataFolder, FolderError, UpInfo, living_up, open_store
from ettwatch_app.render import write_advice
from ettwatch_app.up.ownership import owner_of

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store

_PATIENCE_S: Final = 10.0
"""How long an `up` may take for a sign of life. Queries may take longer."""


@contextlib.contextmanager
def opened_at(url: str) -> Iterator["Store"]:
    """Connect to a ClickHouse server. Raises Refused: it is no address, does not answer, or refuses."""
    import ettwatch_clickhouse as sink
    from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError

    try:
        store = ClickHouseAccess.read(os.environ, url).connect()
    except (ClickHouseSettingError, sink.StoreError) as error:
        raise Refused(str(error)) from None
    with contextlib.closing(store):
        yield store


@contextlib.contextmanager
def opened(folder: DataFolder, who: str, *, patience_s: float = _PATIENCE_S) -> Iterator["Store"]:
    """Open the ClickHouse of a data folder that is there, through the `up` that lives in it or directly.

    Args:
        folder: The data folder.
        who: The command, named to those who find the folder in use.
        patience_s: How long (seconds) an `up` that lives there may take for a sign of life.

    Raises:
        Refused: It is no data folder, cannot be written to, or its `up` does not answer.
        FolderError: As `open_store`.
    """
    _refuse_foreign(folder)
    info = living_up(folder)
    if info is not None and info.url is not None:
        _await_answer(info, patience_s)
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(open_store(folder, who=who))
        except FolderError as error:
            cause = _system_error(error)
            if cause is None:
                raise
            raise Refused(
                f"cannot write to the data folder {folder.root}: {cause.strerror or cause}; {write_advice(cause)}"
            ) from error
        yield store


def _refuse_foreign(folder: DataFolder) -> None:
    """Refuse a folder without a ClickHouse, in which `open_store` would make one."""
    try:
        if not folder.root.is_dir() or (folder.clickhouse / "metadata").is_dir() or owner_of(folder) is not None:
            return
    except OSError as error:
        raise Refused(f"cannot look into the data folder {folder.root}: {error.strerror or error}") from None
    raise Refused(
        f"{folder.root} is no data folder: it holds no ClickHouse; start `ettwatch up` or `ettwatch demo` there first, "
        "or name the right one with --data or ETTWATCH_DATA"
    )


def _await_answer(info: UpInfo, patience_s: float) -> None:
    parts = urlsplit(info.url or "")
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=patience_s)
    try:
        connection.request("GET", "/ping")
        connection.getresponse().read()
    except TimeoutError:
        raise Refused(
            f"`ettwatch up` (process {info.pid}) does not answer at {info.url}; "
            f"let it go on (kill -CONT {info.pid}) if it was stopped, else end it and start it again"
        ) from None
    except (OSError, http.client.HTTPException):
        # It refuses: it may be about to end, and who opens the store will see.
        return
    finally:
        connection.close()


def _system_error(error: FolderError) -> OSError | None:
    """What the system said, if the folder cannot be written to."""
    import ettwatch_clickhouse as sink

    cause = error.__cause__
    if isinstance(cause, sink.DataFolderNotWritable):
        cause = cause.__cause__
    return cause if isinstance(cause, OSError) else None
