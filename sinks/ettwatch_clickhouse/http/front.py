"""The HTTP front: ClickHouse's protocol over the embedded engine, so that any ClickHouse client can ask it."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from typing import Any

from ettwatch_clickhouse.embedded import EmbeddedStore
from ettwatch_clickhouse.http.engine import Engine
from ettwatch_clickhouse.http.guard import Guard, is_loopback
from ettwatch_clickhouse.http.handler import Handler, quick
from ettwatch_clickhouse.store import Store

__all__ = ["HttpFront", "Limits", "serve"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may cost.

    Attributes:
        body_bytes: Largest body of a request, also unpacked.
        query_s: Longest time of a statement, in seconds; a client may ask for less.
        query_bytes: Most memory of a statement; a client may ask for less.
        idle_s: Seconds for which a connection may say nothing, in the middle of a request too.
        head_s: Seconds within which a new connection has to have sent the head of a request.
        connections: How many clients at once.
    """

    body_bytes: int = 4 << 30
    query_s: float = 300.0
    query_bytes: int = 2 << 30
    idle_s: float = 60.0
    head_s: float = 5.0
    connections: int = 64


class Server(ThreadingHTTPServer):
    """Listens, and gives each connection a thread."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        engine: Engine,
        guard: Guard,
        limits: Limits,
        lock: AbstractContextManager[object] | None,
    ) -> None:
        self.engine = engine
        self.guard = guard
        self.limits = limits
        self._lock = lock
        self._room = threading.BoundedSemaphore(limits.connections)
        self._open: set[socket.socket] = set()
        self._headless: dict[socket.socket, float] = {}
        self._open_lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, Handler)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the owner's lock, if there is one, while a statement runs."""
        with self._lock if self._lock is not None else contextlib.nullcontext():
            yield

    def server_bind(self) -> None:
        """Bind without asking a name server for this machine's name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()[:2]
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection a thread, if there is room."""
        if not self._room.acquire(blocking=False):
            with contextlib.suppress(OSError):
                quick(request)
            self.shutdown_request(request)
            return
        with self._open_lock:
            self._open.add(request)
            self._headless[request] = time.monotonic() + self.limits.head_s
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._open_lock:
                self._open.discard(request)
                self._headless.pop(request, None)
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: what a client did wrong is its own matter."""

    def headed(self, connection: socket.socket) -> None:
        """Note that a connection has sent the head of a request."""
        with self._open_lock:
            self._headless.pop(connection, None)

    def service_actions(self) -> None:
        """Hang up on new connections that have not sent the head of a request in time. Called all the time."""
        now = time.monotonic()
        with self._open_lock:
            late = [connection for connection, until in self._headless.items() if until < now]
            for connection in late:
                del self._headless[connection]
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def hang_up(self) -> None:
        """End all connections."""
        with self._open_lock:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class HttpFront:
    """A running front. A context manager.

    Attributes:
        url: Its address, such as ``http://127.0.0.1:8123``.
        port: Its port.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        host = server.server_name
        self.port = server.server_port
        self.url = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        self._thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="clickhouse-http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more. Statements that run are not waited for. Does nothing the second time."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server.hang_up()
            self._server.engine.close()

    def __enter__(self) -> "HttpFront":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(
    store: Store,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    lock: AbstractContextManager[object] | None = None,
    readonly: bool = False,
    password: str | None = None,
    anywhere: bool = False,
    limits: Limits | None = None,
) -> HttpFront:
    """Serve ClickHouse's HTTP protocol over the embedded engine, in threads of this process.

    Args:
        store: From :func:`open_embedded`; to be closed after the front.
        host: The address to listen on.
        port: The port; 0 picks a free one.
        lock: Held while a statement runs, for owners who want to keep clients out for a moment.
        readonly: Refuse every change (error 164).
        password: What clients have to give; without one, whoever reaches the port is answered.
        anywhere: Allow an address that other machines reach. Give a password then.
        limits: What a client may cost.

    Raises:
        ValueError: The address is reached by other machines, which was not asked for; or the store is no embedded one.
        OSError: The address is taken, or not of this machine.
    """
    if not is_loopback(host) and not anywhere:
        raise ValueError(
            f"host: {host} may be reached by other machines; listen on 127.0.0.1, or pass anywhere=True and a password"
        )
    if not isinstance(store, EmbeddedStore):
        raise ValueError("store: only the embedded engine can be served; a server speaks for itself")
    limits = limits or Limits()
    engine = Engine(store, readonly=readonly, query_s=limits.query_s, query_bytes=limits.query_bytes)
    guard = Guard(loopback=is_loopback(host), password=password)
    return HttpFront(Server((host, port), engine, guard, limits, lock))
