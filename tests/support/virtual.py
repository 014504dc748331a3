"""An event loop whose time is made up: nobody waits, and every run of a seed is the same."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class _Selector(selectors.SelectSelector):
    """Where the loop would wait, its time moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Return at once."""
        if timeout is None:
            raise RuntimeError("everybody waits for somebody else")
        self.now_s += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self) -> None:
        self._made_up = _Selector()
        super().__init__(self._made_up)

    def time(self) -> float:
        """Return the time that is made up (s)."""
        return self._made_up.now_s


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine in a loop of its own; what is left of its tasks is cancelled."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(_end())
        loop.close()


async def _end() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
