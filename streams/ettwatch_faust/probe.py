"""A small HTTP server beside the work: figures for Prometheus, and whether the process lives and is ready."""

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from ettwatch_faust.web import parse_address

Check: TypeAlias = Callable[[], str | None]
"""Returns None if all is well, else the reason in one line."""

_QUIET_S: Final = 10.0
_TEXT: Final = "text/plain; charset=utf-8"


class ProbeError(Exception):
    """The server cannot be started. One line that says where, why, and what to do."""


class Probe:
    """A running server. A context manager.

    Attributes:
        host: Where it listens.
        port: Its port.
    """

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self.host, self.port = str(server.server_address[0]), int(server.server_address[1])
        self._thread = threading.Thread(target=server.serve_forever, args=(0.2,), name="probe", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    def close(self) -> None:
        """Answer nobody any more. Does nothing the second time."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def __enter__(self) -> "Probe":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(address: str, registry: CollectorRegistry, healthy: Check, ready: Check) -> Probe:
    """Answer `/metrics`, `/healthz` and `/readyz`, in threads that end with the process.

    Args:
        address: HOST:PORT; without a host the loopback, port 0 picks a free one. Who listens elsewhere than on the
            loopback tells the figures to whoever reaches the port.
        registry: The figures.
        healthy: Whether the process works; if not, it should be started anew.
        ready: Whether it does its work right now.

    Raises:
        ValueError: The address is malformed, or `off`: then do not serve.
        ProbeError: The address is taken, or not of this machine.
    """
    place = parse_address(address)
    if place is None:
        raise ValueError("off: nothing is to be served")
    handler = type("_Bound", (_Handler,), {"registry": registry, "checks": {"/healthz": healthy, "/readyz": ready}})
    try:
        return Probe(_server(place, handler))
    except OSError as error:
        why = error.strerror or str(error)
        raise ProbeError(f"cannot listen on {address}: {why}; give another --web HOST:PORT, or off") from None


def _server(place: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing: what a client did wrong is its own matter."""

        def server_bind(self) -> None:
            """Bind without asking a name server for this machine's name."""
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(self.server_address)
            self.server_address = self.socket.getsockname()

    return Server(place, handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _QUIET_S
    server_version = "ettwatch"
    sys_version = ""
    registry: CollectorRegistry
    checks: dict[str, Check]

    def do_GET(self) -> None:
        path = self.path.split("?", 1)[0]
        if path == "/metrics":
            return self._answer(200, generate_latest(self.registry), CONTENT_TYPE_LATEST)
        check = self.checks.get(path)
        if check is None:
            return self._answer(404, b"there are /metrics, /healthz and /readyz\n", _TEXT)
        try:
            reason = check()
        except Exception as error:
            reason = f"the check failed: {error}"
        if reason is None:
            return self._answer(200, b"ok\n", _TEXT)
        return self._answer(503, f"{reason}\n".encode(), _TEXT)

    do_HEAD = do_GET

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""
