"""The rollups kept up to date in a thread of their own, beside whoever writes the tables."""

import threading
from collections.abc import Callable
from typing import Final

from ettwatch_clickhouse.errors import StoreError
from ettwatch_clickhouse.rollups import Rollups

__all__ = ["RollupKeeper"]

_FIRST_S: Final = 2.0


class RollupKeeper:
    """Runs the rollups again and again until it is closed.

    An error ends nothing: it is told, and the next run looks at everything. Where another process keeps the rollups of
    the same database, this one only watches, and takes over when that one falls silent.

    Args:
        rollups: Of the database; nobody else runs them.
        told: Called with each error, in the thread.
        every_s: Seconds from one run to the next.
        first_s: Seconds to the first run.
    """

    def __init__(
        self,
        rollups: Rollups,
        told: Callable[[StoreError], None],
        *,
        every_s: float = 60.0,
        first_s: float = _FIRST_S,
    ) -> None:
        self._rollups = rollups
        self._told = told
        self._every_s = every_s
        self._first_s = first_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rollups", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; a run that is under way is waited for. Does nothing the second time."""
        self._rollups.stop()
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        pause = self._first_s
        while not self._stop.wait(pause):
            pause = self._every_s
            try:
                if not self._rollups.kept_by_another(self._every_s):
                    self._rollups.run()
            except StoreError as error:
                self._told(error)
