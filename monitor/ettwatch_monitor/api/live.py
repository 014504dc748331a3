"""What happens now: one look at the database for all viewers, and to each of them the same bytes."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from typing import Final

from ettwatch_clickhouse import Store
from ettwatch_monitor.api.desk import Busy, Desk, Failed
from ettwatch_monitor.api.shapes import Live
from ettwatch_monitor.queries import (
    LIVE,
    Mark,
    Scope,
    Span,
    Wanted,
    count_firing,
    count_jobs,
    day_figures,
    list_jobs,
    mark,
)

__all__ = ["Hub"]

_MOST_JOBS: Final = 50
_HEARTBEAT_S: Final = 15.0
_SHARE: Final = 5
"""After a look that takes long follows a pause this many times as long: they cost a sixth of a core at most."""
_DAY_US: Final = 86_400_000_000
_LOG: Final = logging.getLogger(__name__)


class Hub:
    """Looks at the database every few seconds while somebody watches.

    Args:
        desk: Asks the database.
        every_s: Seconds from one look to the next; more where a look takes long.
    """

    def __init__(self, desk: Desk, every_s: float) -> None:
        self._desk = desk
        self._every_s = every_s
        self._news = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._ended = False
        self._mark: Mark | None = None
        self._changed = 0
        self._number = 0
        self.latest: Live | None = None
        """The newest that is known."""
        self._bytes = b""
        self.viewers = 0

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield what a viewer is sent, as server-sent events, until `close`."""
        self.viewers += 1
        try:
            if not self._ended and (self._task is None or self._task.done()):
                self._task = asyncio.create_task(self._look())
            sent = -1
            if self.latest is None:
                yield b": wait\n\n"  # the answer begins at once
            while not self._ended:
                if self._number != sent and self._bytes:
                    sent = self._number
                    yield self._bytes
                    continue
                try:
                    async with asyncio.timeout(_HEARTBEAT_S), self._news:
                        await self._news.wait()
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self.viewers -= 1

    async def close(self) -> None:
        """Stop looking, and send the viewers nothing more: their answers end."""
        self._ended = True
        async with self._news:
            self._news.notify_all()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self) -> None:
        """Look as long as somebody watches."""
        while self.viewers:
            began = time.monotonic()
            try:
                await self._once()
            except (Busy, Failed) as error:
                await self._tell(self._stale(str(error)))
            except Exception:
                # One that goes on is worth more to viewers than one that ended.
                _LOG.exception("a look at the database failed")
                await self._tell(self._stale("the last look at the database failed; the log of the monitor says why"))
            took = time.monotonic() - began
            await asyncio.sleep(max(self._every_s - took, _SHARE * took, 0.05))

    async def _once(self) -> None:
        found = await self._desk.ask(None, mark)
        if found == self._mark and self.latest is not None and self.latest.stale is None:
            return
        now = time.time_ns() // 1_000
        if self._mark is None or found.made != self._mark.made:
            self._changed += 1
        number, changed = self._number + 1, self._changed
        live = await self._desk.ask(None, lambda store: _read(store, now, number, changed))
        self._mark = found
        await self._tell(live)

    def _stale(self, why: str) -> Live:
        number, now = self._number + 1, time.time_ns() // 1_000
        if self.latest is not None:
            return self.latest.model_copy(update={"number": number, "stale": why})
        return Live(
            number=number, at_us=now, statuses={}, firing=0, day=None, jobs=[], changed=self._changed, stale=why
        )

    async def _tell(self, live: Live) -> None:
        self.latest, self._number = live, live.number
        self._bytes = f"id: {live.number}\nevent: live\ndata: {live.model_dump_json()}\n\n".encode()
        async with self._news:
            self._news.notify_all()


def _read(store: Store, now: int, number: int, changed: int) -> Live:
    wanted = Wanted(statuses=LIVE)
    return Live(
        number=number,
        at_us=now,
        statuses=count_jobs(store, wanted).get("", {}),
        firing=count_firing(store),
        day=day_figures(store, Span.around(now - _DAY_US, now), Scope()),
        jobs=list_jobs(store, wanted, "-gpus", 1, _MOST_JOBS).jobs,
        changed=changed,
        stale=None,
    )
