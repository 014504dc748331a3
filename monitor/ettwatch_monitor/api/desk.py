"""The desk at which questions to the database are taken in: a few at a time, and the same one once for all who ask."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar, cast

from anyio import CapacityLimiter, to_thread

from ettwatch_clickhouse import Store, StoreError, StoreUnavailable
from ettwatch_monitor.api.settings import Limits

__all__ = ["Busy", "Desk", "Failed"]

_MOST_KEPT: Final = 500

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)


class Busy(Exception):
    """Too much is asked at one time; try again."""


class Failed(Exception):
    """The database gave no answer. One line, without anything about how it is reached.

    Attributes:
        passing: It may work later.
    """

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing


class _Closable:
    """A database that answers nothing any more once it is closed. What it was asked before is answered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        if self.closed:
            raise StoreUnavailable("the monitor ends")
        return getattr(self._store, name)


class Desk:
    """Asks the database, in threads.

    Args:
        store: The database.
        limits: How much at one time.
    """

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = _Closable(store)
        self._limits = limits
        self._limiter = CapacityLimiter(limits.at_once)
        self._waiting = 0
        self._running: set[int] = set()
        self._kept: dict[Hashable, tuple[float, asyncio.Future[Any]]] = {}

    async def ask(self, key: Hashable | None, question: Callable[[Store], T], *, keep_s: float | None = None) -> T:
        """Return the answer to a question.

        Args:
            key: What is asked; the same at one time, and for a while after, is asked once. None: always anew.
            question: Asks; it runs in a thread.
            keep_s: How long the answer is kept; None for the usual while.

        Raises:
            Busy: Too many questions wait.
            Failed: The database gave no answer.
        """
        if key is None:
            return await self._asked(question)
        now = time.monotonic()
        kept = self._kept.get(key)
        if kept is None or (kept[1].done() and now >= kept[0]):
            self._forget(now)
            task = asyncio.ensure_future(self._asked(question))
            # Whoever asked may hang up; an error that nobody waits for any more is no news.
            task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
            kept = (now + (self._limits.keep_s if keep_s is None else keep_s), task)
            self._kept[key] = kept
        try:
            return cast(T, await asyncio.shield(kept[1]))
        except Exception:
            if self._kept.get(key) is kept:
                del self._kept[key]
            raise

    async def _asked(self, question: Callable[[Store], T]) -> T:
        if self._waiting >= self._limits.waiting:
            raise Busy("too many questions wait for the database; try again in a moment")
        self._waiting += 1
        try:
            return await to_thread.run_sync(self._answered, question, limiter=self._limiter)
        except StoreUnavailable as error:
            _LOG.warning("%s", error)
            raise Failed("the database does not answer now; try again in a moment", passing=True) from None
        except StoreError as error:
            _LOG.error("%s", error)
            raise Failed("the database refused the question; the log of the monitor says why", passing=False) from None
        finally:
            self._waiting -= 1

    def _answered(self, question: Callable[[Store], T]) -> T:
        thread = threading.get_ident()
        self._running.add(thread)
        try:
            return question(cast(Store, self._store))
        finally:
            self._running.discard(thread)

    async def close(self) -> None:
        """Let what is under way come to its end, without asking the database for more: it is about to be closed."""
        self._store.closed = True
        while self._running:  # who asked may be gone, their threads are not
            await asyncio.sleep(0.02)

    def _forget(self, now: float) -> None:
        if len(self._kept) < _MOST_KEPT:
            return
        self._kept = {key: kept for key, kept in self._kept.items() if not kept[1].done() or now < kept[0]}
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
