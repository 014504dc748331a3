"""A ClickHouse that misbehaves on demand: an HTTP proxy on the loopback that passes, refuses, delays or lies.

with Flaky(url) as flaky:
    connect(f"{flaky.url}/ettwatch")
    with flaky.being(Fault.LOST):       # inserts are carried out, their answers are lost
        ...
"""

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import urlsplit

__all__ = ["Fault", "Flaky"]

_MOST_S: Final = 600
_KEPT: Final = frozenset({"content-type", "content-encoding", "x-clickhouse-summary", "x-clickhouse-query-id"})
_HOP: Final = frozenset({"host", "connection", "transfer-encoding", "content-length", "keep-alive", "expect"})


class Fault(Enum):
    """What becomes of a request. All but DOWN touch inserts only, where the proxy was not told otherwise."""

    NONE = "none"
    DOWN = "down"
    """Nothing listens on the port, and open connections are cut."""
    BUSY = "busy"
    """Answered with 500 and the error 252 (too many parts), nothing done."""
    BROKEN = "broken"
    """Answered with 500 and no word of ClickHouse, nothing done."""
    LATE = "late"
    """Carried out; the answer comes after `delay_s`."""
    LOST = "lost"
    """Carried out; the connection is cut instead of an answer."""
    HELD_BEFORE = "held before"
    """Waits until `release()`, then is carried out and answered."""
    HELD_AFTER = "held after"
    """Carried out; the answer waits until `release()`."""


class Flaky:
    """The proxy, in threads of this process. A context manager.

    Attributes:
        url: Its address; the port stays the same as long as it lives.
        backend: Where it passes requests on to, HOST:PORT; may be changed at any time.
        delay_s: For `Fault.LATE`.
        all_requests: Whether faults touch queries as well.
        inserts: How many inserts came in.
        faults: How many requests were spoilt.
        held: Set while a request is held.
    """

    def __init__(self, backend: str, delay_s: float = 3.0) -> None:
        self.backend = urlsplit(backend).netloc or backend
        self.delay_s = delay_s
        self.all_requests = False
        self.inserts = 0
        self.faults = 0
        self.held = threading.Event()
        self._fault = Fault.NONE
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self._listen()
        self.url = f"http://127.0.0.1:{self._port}"

    @property
    def fault(self) -> Fault:
        """What it does now."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        if fault is Fault.DOWN:
            self._hush()
        elif self._server is None:
            self._listen()
        if fault in (Fault.HELD_BEFORE, Fault.HELD_AFTER):
            self._released.clear()
            self.held.clear()
        self._fault = fault

    @contextlib.contextmanager
    def being(self, fault: Fault, *, all_requests: bool = False) -> Iterator[None]:
        """Misbehave for a while."""
        self.all_requests = all_requests
        self.fault = fault
        try:
            yield
        finally:
            self.fault = Fault.NONE
            self.all_requests = False
            self.release()

    def release(self) -> None:
        """Let those go on that are held."""
        self._released.set()
        self.held.clear()

    def close(self) -> None:
        """Answer nobody any more."""
        self.release()
        self._hush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self) -> None:
        handler = type("Handler", (_Handler,), {"flaky": self})
        server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        server.daemon_threads = True
        self._port = server.server_address[1]
        self._server = server
        threading.Thread(target=server.serve_forever, args=(0.05,), name="flaky", daemon=True).start()

    def _hush(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            _cut(connection)

    def opened(self, connection: socket.socket) -> None:
        """Note a connection."""
        with self._lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            self._open.discard(connection)

    def judge(self, *, insert: bool) -> Fault:
        """Say what becomes of a request that came in."""
        with self._lock:
            self.inserts += insert
            fault = self._fault if insert or self.all_requests else Fault.NONE
            self.faults += fault is not Fault.NONE
            return fault

    def hold(self) -> None:
        """Wait for `release()`."""
        self.held.set()
        self._released.wait(_MOST_S)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    flaky: Flaky

    def setup(self) -> None:
        super().setup()
        self.flaky.opened(self.connection)

    def finish(self) -> None:
        self.flaky.closed(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._pass(b"")

    def do_POST(self) -> None:
        self._pass(self._body())

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _pass(self, body: bytes) -> None:
        flaky = self.flaky
        # The statement may be packed with the rows; but ettwatch forbids the server only inserts to be asynchronous.
        fault = flaky.judge(insert="async_insert=" in self.path or b"INSERT INTO" in body[:200])
        if fault in (Fault.BUSY, Fault.BROKEN):
            return self._spoil(fault)
        if fault is Fault.HELD_BEFORE:
            flaky.hold()
        status, headers, answer = self._ask(body)
        if fault is Fault.LATE:
            threading.Event().wait(flaky.delay_s)
        elif fault is Fault.HELD_AFTER:
            flaky.hold()
        elif fault is Fault.LOST:
            self.close_connection = True
            return _cut(self.connection)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        return None

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.flaky.backend, timeout=_MOST_S)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            connection.request(self.command, self.path, body if self.command == "POST" else None, headers)
            response = connection.getresponse()
            kept = [
                (name, value)
                for name, value in response.getheaders()
                if name.lower() in _KEPT or name.lower().startswith("x-clickhouse")
            ]
            return response.status, kept, response.read()
        except (OSError, http.client.HTTPException):
            # A backend that is away looks as if this one were.
            _cut(self.connection)
            raise OSError("the backend is away") from None
        finally:
            connection.close()

    def _spoil(self, fault: Fault) -> None:
        told = "Code: 252. DB::Exception: Too many parts (301). (TOO_MANY_PARTS)" if fault is Fault.BUSY else "oops"
        answer = told.encode()
        self.send_response(500)
        if fault is Fault.BUSY:
            self.send_header("X-ClickHouse-Exception-Code", "252")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
