"""Serving the monitor: one process, until it is told to end."""

import asyncio
import contextlib
import logging
import os
import socket
import threading
from collections.abc import Iterator
from typing import Final

import uvicorn

from ettwatch_monitor.api.guard import Guard
from ettwatch_monitor.api.patient import patient
from ettwatch_monitor.api.settings import Limits

__all__ = ["ListenError", "beside", "listen", "server_for"]

_BACKLOG: Final = 512
_HEAD_BYTES: Final = 16 << 10
_END_S: Final = 5.0
"""Time to end beyond that of the longest query."""
_SAY_S: Final = 1.0
_LOOK_S: Final = 0.1

_LOG: Final = logging.getLogger(__name__)


class ListenError(Exception):
    """The address cannot be listened at. One line that says why, and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any that is free. Raises ListenError."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(place)
            made.listen(_BACKLOG)
        except OSError:
            made.close()
            raise
    except OSError as error:
        why = error.strerror or str(error)
        raise ListenError(f"cannot listen at {host}:{port}: {why}; choose another address with --listen") from None
    made.setblocking(False)
    return made


class _Server(uvicorn.Server):
    """Has the application end its endless answers first: what has to be cut off is told as a fault.

    Where that takes a while it says so. Whoever asks once more does not wait.
    """

    def __init__(self, config: uvicorn.Config, app: Guard) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ending = asyncio.ensure_future(self._app.end())
        done, _ = await asyncio.wait([ending], timeout=_SAY_S)
        if not done:
            _LOG.warning("ending: the last questions to the database are being answered; once more to end at once")
        while not ending.done() and not self.force_exit:
            await asyncio.wait([ending], timeout=_LOOK_S)
        if not ending.done():
            os._exit(130)  # nothing here has to be saved, and a database must not be closed under a query
        await ending
        await super().shutdown(sockets)


def server_for(app: Guard, limits: Limits) -> uvicorn.Server:
    """Return a server; `run(sockets=[...])` serves until SIGTERM, SIGINT, or `should_exit` is set."""
    config = uvicorn.Config(
        app,
        http=patient(limits.head_s),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,  # who asks is told by the connection; a proxy's word counts in one header only
        limit_concurrency=limits.connections,
        backlog=_BACKLOG,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=_HEAD_BYTES,
    )
    return _Server(config, app)


@contextlib.contextmanager
def beside(app: Guard, at: socket.socket, limits: Limits) -> Iterator[None]:
    """Serve in a thread for as long as the block lasts, beside whatever else the process does.

    Args:
        app: The application.
        at: As `listen` returned it; closed at the end.
        limits: How much at one time.
    """
    server = server_for(app, limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [at]}, name="monitor", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(limits.sql_s + _END_S)  # before that the database must not be closed
        at.close()
