"""A made-up fleet for `ettwatch monitor --demo`: some days that were, and from then on what happens as time goes by."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from ettwatch_app.monitor.madeup import ALERT_COLUMNS, DAY_US, alert_rows
from ettwatch_app.ownertable import push_owners
from ettwatch_clickhouse import EmbeddedStore, Rollups, StoreError, Writer
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_core.ownership import Owners
from ettwatch_schemas import Event, encode_event
from ettwatch_sim.life import Injection, preset, simulate

__all__ = ["DemoFleet"]

_AHEAD_DAYS: Final = 2.0
"""For how long the fleet goes on."""
_EVERY_S: Final = 2.0
_ROLLED_EVERY_S: Final = 20.0
_RULES: Final = Rules(lateness=None)
_REPORT_S: Final = 300.0
"""Longest silence of a loop: few events, and enough to see how it goes."""


class DemoFleet:
    """Fills a database with the past of a fleet, then with its present.

    Args:
        store: With all migrations applied; empty.
        owners: The rules of ownership.
        days: Of the past.
        seed: Equal seeds give equal fleets.
        clock: The time in µs.
    """

    def __init__(
        self,
        store: EmbeddedStore,
        owners: Owners,
        days: float,
        seed: int,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self._store = store
        self._owners = owners
        self._clock = clock
        self._writer = Writer(store)
        self._rollups = Rollups(store)
        self._states: dict[str, JobState] = {}
        self._days = days
        self._begin = clock() - int(days * DAY_US)
        self._events = _events(self._begin, days, seed)
        self._next: Event | None = next(self._events, None)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="demo-fleet", daemon=True)

    def fill(self) -> int:
        """Write the past; return how many jobs there are. Raises StoreError."""
        push_owners(self._store, self._owners, self._clock())
        self._write(self._clock())
        self._rollups.run(full=True)
        self._store.insert("alerts_log", ALERT_COLUMNS, alert_rows(self._begin, self._days, self._clock()))
        return len(self._states)

    def start(self) -> None:
        """Go on with the present, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop going on."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _write(self, now: int) -> None:
        touched: set[str] = set()
        while self._next is not None and self._next.ts <= now:
            event = self._next
            state = self._states.setdefault(event.job, JobState(event.job))
            apply(state, event, _RULES)
            self._writer.event(event, encode_event(event))
            touched.add(event.job)
            self._next = next(self._events, None)
        for job in touched:
            self._writer.snapshot(snapshot(self._states[job], _RULES, keep=False))
        self._writer.flush()

    def _go_on(self) -> None:
        rolled = time.monotonic()
        while not self._stop.wait(_EVERY_S):
            try:
                self._write(self._clock())
                if time.monotonic() - rolled >= _ROLLED_EVERY_S:
                    rolled = time.monotonic()
                    self._rollups.run()
            except StoreError:  # what could not be written is kept, and written the next time
                continue


def _events(begin: int, days: float, seed: int) -> Iterator[Event]:
    """The fleet of ten teams, in which some things get worse within its days."""
    scenario = preset("fleet").but(
        days=days + _AHEAD_DAYS,
        begin=begin,
        drain=False,
        report_every_s=_REPORT_S,
        travel={},
        injections=(
            Injection(
                name="slow-registry", what="stage", stage="hardware_setup", factor=3, from_day=days / 2, cluster="west"
            ),
            Injection(name="cold-caches", what="cold_caches", factor=0.8, from_day=days * 0.6, team="feed"),
            Injection(name="failing-hosts", what="failures", factor=3, from_day=days * 0.7, cluster="north"),
        ),
    )
    return simulate(seed, scenario)
