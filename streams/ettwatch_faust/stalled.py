"""A reading of the state that stands still is set going again.

Faust's recovery waits for the records of the changelog for as long as it takes. Where one that it waits for was fetched
while the flow was stopped for a rebalance, it is dropped and never comes; Faust says so every 30 seconds, and no more.
Here the place is sought once more.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

__all__ = ["RecoveryWatch"]

_LOG: Final = logging.getLogger(__name__)

_LONGEST_S: Final = 60.0


class RecoveryWatch:
    """Looks after the recovery of an app.

    Args:
        app: The app.
        patience_s: How long nothing may come, at first; each time in vain doubles it, up to a minute.
        monotonic: A clock that never jumps, in seconds.
    """

    def __init__(self, app: Any, *, patience_s: float = 10.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._patience_s = self._now_s = patience_s
        self._monotonic = monotonic
        self._have: dict[Any, int | None] = {}
        self._since_s = monotonic()

    async def look(self) -> None:
        """Look once; to be called every second or so."""
        recovery = self._app.tables.recovery
        waits = recovery.in_recovery and recovery.need_recovery()
        have = {tp: recovery.active_offsets[tp] for tp in recovery.active_tps} if waits else {}
        if not waits or have != self._have:
            self._have, self._since_s, self._now_s = have, self._monotonic(), self._patience_s
        elif self._monotonic() - self._since_s >= self._now_s:
            await self._set_going(recovery)
            self._since_s, self._now_s = self._monotonic(), min(2 * self._now_s, _LONGEST_S)

    async def _set_going(self, recovery: Any) -> None:
        missing = sorted((tp.partition, left) for tp, left in recovery.active_remaining().items() if left > 0)
        _LOG.warning(
            "reading the state stands still (%s): seeking its place again",
            ", ".join(f"{left:,} records of partition {partition}" for partition, left in missing),
            extra={"event": "state_stalled", "partitions": [partition for partition, _ in missing]},
        )
        consumer, partitions = self._app.consumer, set(recovery.active_tps)
        try:
            seek = recovery._seek_offsets(consumer, partitions, recovery.active_offsets, "active")
            await asyncio.wait_for(seek, self._patience_s)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # The brokers are away, or the partitions were taken away meanwhile: then another recovery begins.
            _LOG.info("cannot seek: %s", error, extra={"event": "not_sought"})
            return
        consumer.resume_partitions(partitions)
        self._app.flow_control.resume()
        consumer.resume_flow()
