"""The parts of one run put together, over a store that is open."""

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from ettwatch_app.datafolder import DataFolder, FolderError
from ettwatch_app.up.commit import Committer
from ettwatch_app.up.jobs import Jobs
from ettwatch_app.up.letters import DeadLetters
from ettwatch_app.up.log import Log, named
from ettwatch_app.up.progress import Progress
from ettwatch_app.up.refold import refold, stored_jobs, stored_since
from ettwatch_app.up.runner import Runner
from ettwatch_app.up.settings import UpSettings
from ettwatch_app.up.spool import Spool
from ettwatch_app.up.statefile import StateFile, StateFileError
from ettwatch_app.up.storeid import store_id
from ettwatch_clickhouse import Retry, Store, StoreError, Writer
from ettwatch_core import Rules

_ONCE_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Clocks:
    """The times and the waiting of one run; tests bring their own.

    Attributes:
        now_us: The time in µs since the epoch.
        monotonic: A monotonic time in s.
        wait: Waits for some seconds; returns True if the run is to end.
    """

    now_us: Callable[[], int]
    monotonic: Callable[[], float]
    wait: Callable[[float], bool]


def real_clocks(stop: threading.Event) -> Clocks:
    """Return the machine's clocks; waiting ends when `stop` is set."""
    return Clocks(lambda: time.time_ns() // 1_000, time.monotonic, stop.wait)


def patient_writer(store: Store) -> Writer:
    """Return a writer that writes when it is told to, and tells at once what it could not write.

    The waiting is done by the committer, where a signal can end it; what waits is bounded by the loop.
    """
    never = 1 << 62
    return Writer(store, max_rows=never, max_bytes=never, retry=Retry(patience_s=0.0))


def build(
    settings: UpSettings,
    folder: DataFolder,
    store: Store,
    writer: Writer,
    log: Log,
    clocks: Clocks,
    stack: ExitStack,
    tend: Callable[[], None] | None = None,
) -> Runner:
    """Return a runner over an opened store; what has to be closed is pushed onto `stack`; `tend` is called every round.

    Raises:
        FolderError: The state file or the dead letters cannot be opened.
    """
    limits = settings.limits
    try:
        kept = StateFile(folder.state)
        stack.callback(kept.close)
        letters = DeadLetters(
            folder.rejected, kept.rejected_length(), rotate_at=limits.letters_bytes, keep=limits.keep_letter_bytes
        )
        stack.callback(letters.close)
        if kept.rejected_length() is None:
            kept.set_meta("rejected_length", letters.length)
        _adopt(store, store_id(folder.clickhouse), kept, log, clocks)
        committed_us = kept.committed_us()
        if committed_us is None:
            committed_us = clocks.now_us()
            kept.set_meta("committed_us", committed_us)
        stored = stored_since(store, committed_us)
    except (StateFileError, StoreError) as e:
        raise FolderError(str(e)) from e
    except (OSError, sqlite3.Error) as e:
        raise FolderError(f"cannot use the data folder {folder.root}: {e}") from e
    rules = Rules(lateness=settings.lateness_us)
    spool = Spool(
        settings.spools,
        kept.places(),
        limits,
        slack=None if settings.lateness_us is None else settings.lateness_us // 2,
        once=settings.once,
        clock=clocks.now_us,
        monotonic=clocks.monotonic,
    )
    stack.callback(spool.close)
    jobs = Jobs(
        kept,
        rules,
        writer,
        lambda job: refold(store, job, rules),
        interval_us=settings.interval_us,
        limits=limits,
    )
    committer = Committer(
        store,
        writer,
        kept,
        jobs,
        spool,
        letters,
        log,
        clock=clocks.now_us,
        wait=clocks.wait,
        pauses=limits.retry_s,
        tries=_ONCE_TRIES if settings.once else None,
    )
    progress = Progress(log, folder.rejected.name, limits.report_s, clocks.monotonic)
    runner = Runner(
        settings,
        spool,
        jobs,
        committer,
        log,
        progress,
        clock=clocks.now_us,
        monotonic=clocks.monotonic,
        wait=clocks.wait,
        tend=tend,
    )
    runner.mind_clock(committed_us)  # of the last run
    lacked = runner.take_stored(stored)
    if lacked:
        log.say("resumed", f"the last run ended before it had counted {named(lacked, 'event')} that it had stored")
    return runner


def _adopt(store: Store, mark: str, kept: StateFile, log: Log, clocks: Clocks) -> None:
    known_mark = kept.meta("store_id")
    lost = known_mark is not None and known_mark != mark
    if lost:
        known = kept.known_jobs()
        log.alert(
            "store_lost",
            f"the state file belongs to another ClickHouse, with {named(len(known), 'job')}: it was deleted or "
            "replaced. Starting anew: what lies in the spool is read again, what was removed from it cannot be",
        )
        kept.start_anew()
    if lost or kept.meta("adopted") is None:
        jobs = stored_jobs(store)
        if jobs and not lost:
            log.alert("adopted", f"the state file is new, but {named(len(jobs), 'job')} are stored: folding them again")
        kept.adopt(jobs, clocks.now_us())
        kept.set_meta("adopted", 1)
    # Last: a crash before this begins it once more.
    if known_mark != mark:
        kept.set_meta("store_id", mark)
