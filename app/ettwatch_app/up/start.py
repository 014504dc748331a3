"""Putting `ettwatch up` together: the folder, the engine, the front, the loop, and the way down."""

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

from ettwatch_app import datafolder
from ettwatch_app.asked import Asked
from ettwatch_app.datafolder import DataFolder, FolderError, FolderInUse, Ownership, UpInfo
from ettwatch_app.owners import OwnersWatch
from ettwatch_app.up.assemble import build, patient_writer, real_clocks
from ettwatch_app.up.commit import GaveUp
from ettwatch_app.up.log import Log, named
from ettwatch_app.up.owners import OwnersKeeper
from ettwatch_app.up.page import serve_page
from ettwatch_app.up.progress import Totals
from ettwatch_app.up.settings import UpSettings
from ettwatch_clickhouse import (
    RollupKeeper,
    Rollups,
    Store,
    StoreError,
    broken_parts,
    migrate,
    open_embedded,
    serve,
)
from ettwatch_clickhouse.tables import EVENTS_TABLE

_PATIENCE_S: Final = 10.0


def run_up(settings: UpSettings) -> int:
    """Own the data folder, follow the spool folders and serve, until told to stop; return the exit code.

    Returns:
        0: done; 1: done, but some input was rejected; 2: something could not be written, and what was not is
        read again the next time.

    Raises:
        FolderError: The data folder is in use, cannot be written to, or cannot be opened; or a spool folder is not
            there; or the address is taken.
    """
    stop = Asked()
    halts: list[Callable[[], None]] = [stop.set]
    log = Log(sys.stderr, settings.log_format)
    folder = DataFolder(settings.data)
    with ExitStack() as stack:
        stack.enter_context(_own(folder))
        stack.enter_context(_signals(stop, halts, log))
        for spool in settings.spools:
            _prepare_spool(spool, folder, settings, log)
        store = _open(folder, log, stack)
        clocks = real_clocks(stop)
        owners = OwnersKeeper(OwnersWatch(folder.owners), store, log, clocks.now_us)
        runner = build(settings, folder, store, patient_writer(store), log, clocks, stack, owners.tend)
        url = _front(settings, store, stack)
        datafolder.announce(
            folder,
            UpInfo(os.getpid(), url, datetime.now(UTC).isoformat(timespec="seconds"), tuple(map(str, settings.spools))),
        )
        stack.callback(datafolder.retract, folder)
        page = serve_page(settings.page, store, log, stack)
        watched = ", ".join(map(str, settings.spools))
        serving = (f"page at {page} · " if page else "") + (f"ClickHouse at {url}" if url else "no HTTP")
        log.say(
            "started",
            f"data in {folder.root} · watching {watched} · {serving}",
            url=url,
            page=page,
            data=str(folder.root),
        )
        rollups = _rollups(settings, store, log, stack)
        halts.append(rollups.stop)
        try:
            runner.run()
            if settings.once:
                rollups.run()
        except (GaveUp, StoreError, sqlite3.Error) as e:
            log.alert("gave_up", f"{e}; nothing is lost: what was not written is read again at the next start")
            return 2
        totals = runner.totals
        log.say("stopped", _farewell(totals, folder), events=totals.taken, rejects=dict(totals.rejects))
    return 1 if totals.rejected or totals.troubles else 0


def _own(folder: DataFolder) -> Ownership:
    # A query that is just being answered is waited for; another `up` is not.
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return Ownership(folder, "ettwatch up")
        except FolderInUse as e:
            if e.by_up or time.monotonic() >= deadline:
                raise
            time.sleep(0.1)


def _farewell(totals: Totals, folder: DataFolder) -> str:
    rejected = f", {totals.rejected:,} rejected: see {folder.rejected}" if totals.rejected else ""
    return f"stopped; {named(totals.taken, 'event')} taken in this run{rejected}"


def _open(folder: DataFolder, log: Log, stack: ExitStack) -> Store:
    try:
        store = open_embedded(folder.clickhouse)
        stack.callback(store.close)
        migrate(store)
        _tell_damage(broken_parts(store), log)
    except StoreError as e:
        raise FolderError(f"cannot open the ClickHouse in {folder.root}: {e}") from e
    return store


def _tell_damage(broken: dict[str, int], log: Log) -> None:
    """Say which tables lack rows, and what brings them back."""
    derived = [table for table in broken if table != EVENTS_TABLE]
    if derived:
        log.alert(
            "parts_damaged",
            f"ClickHouse has put damaged parts of {', '.join(derived)} aside: rows are missing until "
            "`ettwatch rebuild` makes them anew from the stored events",
        )
    if EVENTS_TABLE in broken:
        log.alert(
            "events_damaged",
            f"ClickHouse has put {named(broken[EVENTS_TABLE], 'damaged part')} of {EVENTS_TABLE} aside: stored events "
            "are missing; put a copy of their files into the spool once more, or take the folder from a backup",
        )


def _rollups(settings: UpSettings, store: Store, log: Log, stack: ExitStack) -> Rollups:
    """Return the rollups of the store; a thread keeps them up to date, unless all is done once."""
    rollups = Rollups(store)
    if not settings.once:
        keeper = RollupKeeper(rollups, lambda error: log.alert("rollups", f"the rollups are not up to date: {error}"))
        stack.callback(keeper.close)
    return rollups


def _prepare_spool(spool: Path, folder: DataFolder, settings: UpSettings, log: Log) -> None:
    if spool.is_dir():
        return
    if settings.once and spool != folder.spool:
        raise FolderError(f"there is no spool folder {spool}; name the right one with --spool or ETTWATCH_SPOOL")
    try:
        spool.mkdir(parents=True)
    except OSError as e:
        raise FolderError(f"cannot create the spool folder {spool}: {e.strerror or e}; choose another") from e
    if spool != folder.spool:
        log.say("spool_created", f"created the spool folder {spool}")


def _front(settings: UpSettings, store: Store, stack: ExitStack) -> str | None:
    if settings.listen is None:
        return None
    host, port = settings.listen
    try:
        front = serve(store, host, port)
    except OSError as e:
        raise FolderError(
            f"cannot serve on {host}:{port}: {e.strerror or e}; "
            "give another address with --listen, such as --listen 127.0.0.1:0 for any free port"
        ) from e
    stack.callback(front.close)
    return front.url


@contextmanager
def _signals(stop: threading.Event, halts: Sequence[Callable[[], None]], log: Log) -> Iterator[None]:
    """The first SIGTERM or SIGINT calls `halts` and so ends the run in good order, the second one ends it at once."""

    def handle(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            # Nothing to save: what is not committed is read again.
            os._exit(128 + number)
        for halt in halts:
            halt()
        log.say("stopping", "stopping: writing what was read; once more to stop at once")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
