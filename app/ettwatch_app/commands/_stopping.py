"""How a worker ends when it is asked to: in good order, but not later than somebody waits for it."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from ettwatch_app.commands._shared import DONE

__all__ = ["until_asked"]

_LOG: Final = logging.getLogger(__name__)
PATIENCE_S: Final = 45.0
"""How long the good order may take: less than the 60 s that the files in deploy/ grant."""


async def until_asked(run: Callable[[asyncio.Event], Awaitable[None]], patience_s: float = PATIENCE_S) -> None:
    """Run until SIGTERM or SIGINT, and end the process where ending takes too long, or is asked for twice.

    Without brokers nothing can be handed back, and the clients would wait for them. What was not committed is read
    again by whoever comes next, as after a crash.
    """
    asked = asyncio.Event()
    ended = threading.Event()

    def leave(why: str) -> None:
        _LOG.warning("%s: leaving without handing anything back; nothing is lost", why, extra={"event": "left"})
        logging.shutdown()
        os._exit(DONE)

    def watch() -> None:
        if not ended.wait(patience_s):
            leave(f"stopping took more than {patience_s:g} s")

    def ask() -> None:
        if asked.is_set():
            leave("asked twice")
        asked.set()
        threading.Thread(target=watch, daemon=True).start()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask)
    try:
        await run(asked)
    finally:
        ended.set()
