"""Watching whether a client is still there while its statement runs."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["while_there"]

_EVERY_S: Final = 0.5
_GONE: Final = getattr(select, "POLLRDHUP", 0)
"""The other side sends nothing more; not known on every system, where the time limit has to do."""


@contextmanager
def while_there(connection: socket.socket, gone: Callable[[], None]) -> Iterator[None]:
    """Call `gone` about twice a second from the moment at which the client hangs up until the block is left.

    Args:
        connection: To the client; nothing is read from it.
        gone: Called in a thread of its own. Again and again, since a statement may not have begun when it is called.
    """
    done = threading.Event()
    poll = select.poll()
    poll.register(connection, _GONE)  # errors are reported in any case

    def watch() -> None:
        while not done.wait(_EVERY_S):
            if poll.poll(0):
                gone()

    thread = threading.Thread(target=watch, name="clickhouse-http-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
