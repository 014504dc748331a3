"""The ownership file while `ettwatch up` runs: read again as it changes, and shown in ClickHouse."""

from collections.abc import Callable
from typing import Final

from ettwatch_app.owners import OwnersWatch
from ettwatch_app.ownertable import push_owners
from ettwatch_app.up.log import Log, named
from ettwatch_clickhouse import Store, StoreError
from ettwatch_core.ownership import Owners

_AGAIN_US: Final = 30_000_000


class OwnersKeeper:
    """Keeps the view `owners` as the ownership file is. A file that is wrong, or a refusal, stops nothing.

    Args:
        watch: Looks at the file.
        store: The database.
        log: Where it speaks.
        clock: The time in µs.
    """

    def __init__(self, watch: OwnersWatch, store: Store, log: Log, clock: Callable[[], int]) -> None:
        self._watch = watch
        self._store = store
        self._log = log
        self._clock = clock
        self._unwritten: Owners | None = None
        self._again_us = 0

    def tend(self) -> None:
        """Do what there is to do now."""
        now = self._clock()
        change = self._watch.look(now)
        if change is not None and change.problem is not None:
            kept = "no owners are known" if self._watch.owners is None else "the owners before it go on to count"
            self._log.alert("owners", f"{kept}: {change.problem}")
        if change is not None and change.owners is not None:
            self._unwritten, self._again_us = change.owners, now
            for line, reason in change.owners.doubts:
                self._log.alert("owners", f"{change.owners.source}:{line}: {reason}")
        if self._unwritten is not None and not now < self._again_us <= now + _AGAIN_US:
            self._write(self._unwritten, now)

    def _write(self, owners: Owners, now: int) -> None:
        try:
            new = push_owners(self._store, owners, now)
        except StoreError as error:
            self._again_us = now + _AGAIN_US
            self._log.alert("owners", f"the owners of {owners.source} are not in ClickHouse yet: {error}")
            return
        self._unwritten = None
        if new:
            self._log.say("owners", f"took in {named(len(owners.rules), 'rule')} of ownership from {owners.source}")
