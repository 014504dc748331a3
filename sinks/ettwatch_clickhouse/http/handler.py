"""One connection: requests in, answers out, as a ClickHouse server would give them."""

import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ettwatch_clickhouse.errors import code_of
from ettwatch_clickhouse.http.body import Body
from ettwatch_clickhouse.http.encodings import accepted, compressor
from ettwatch_clickhouse.http.engine import Answer, new_query_id
from ettwatch_clickhouse.http.fence import Refusal
from ettwatch_clickhouse.http.query import Query, read_query
from ettwatch_clickhouse.http.status import content_type, http_status

if TYPE_CHECKING:
    from ettwatch_clickhouse.http.front import Server

__all__ = ["Handler"]

_DRAIN: Final = 64 << 20
_SMALL: Final = 1 << 10
_PIECE: Final = 1 << 20


class Handler(BaseHTTPRequestHandler):
    """Speaks ClickHouse's HTTP protocol."""

    protocol_version = "HTTP/1.1"
    server_version = "ettwatch"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: "Server"

    def setup(self) -> None:
        """Bound the time for which a silent client holds a thread."""
        super().setup()
        self.connection.settimeout(self.server.limits.idle_s)

    def finish(self) -> None:
        """Let go of the connection, also where the last answer cannot be sent any more."""
        with suppress(OSError):
            super().finish()
        self.rfile.close()

    def parse_request(self) -> bool:
        """Read the head of a request."""
        good = super().parse_request()
        self.server.headed(self.connection)
        return good

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the client is told."""

    def handle(self) -> None:
        """Serve requests until the client is done; one that is gone is no error."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is no HTTP in plain text."""
        self.close_connection = True
        self.request_version = "HTTP/1.1"  # whatever it was, the answer has a status
        self._plain(code, f"{message or 'bad request'}\n", {"Connection": "close"})

    def do_GET(self) -> None:
        """Answer a request that may not change anything."""
        self._serve(changes=False)

    def do_HEAD(self) -> None:
        """As GET, without the body."""
        self._serve(changes=False)

    def do_POST(self) -> None:
        """Answer a request that may change something."""
        self._serve(changes=True)

    def _serve(self, *, changes: bool) -> None:
        try:
            url = urlsplit(self.path)
        except ValueError as e:
            return self.send_error(400, f"the address {self.path!r} cannot be read: {e}")
        try:
            body = self._body()
        except Refusal as e:
            self.close_connection = True
            return self._refuse(e, "")
        try:
            self.server.guard.check(self.headers, url.query)
            if url.path in ("/ping", "/replicas_status") or (url.path == "/" and not changes and not url.query):
                return self._plain(200, "Ok.\n", {})
            if url.path not in ("", "/"):
                return self._plain(404, f"There is no handle {url.path}\n\nUse / or /ping\n", {})
            self._run(url.query, body, changes)
        except Refusal as e:
            self._refuse(e, url.query)
        finally:
            if not body.ended and not self.close_connection:
                body.drain(_DRAIN)
                self.close_connection = self.close_connection or not body.ended

    def _body(self) -> Body:
        chunked = "chunked" in (self.headers.get("Transfer-Encoding") or "").lower()
        told = self.headers.get("Content-Length")
        if told is not None and (not told.isascii() or not told.isdigit()):
            raise Refusal(36, "BAD_ARGUMENTS", f"Content-Length {told!r} is no number")
        length = int(told) if told is not None and not chunked else None
        if self.command == "POST" and length is None and not chunked:
            raise Refusal(
                381, "HTTP_LENGTH_REQUIRED", "A POST request needs Content-Length or Transfer-Encoding: chunked"
            )
        encoding = (self.headers.get("Content-Encoding") or "").strip().lower()
        return Body(self.rfile, length, chunked, encoding, self.server.limits.body_bytes)

    def _run(self, url_query: str, body: Body, changes: bool) -> None:
        query = read_query(url_query, self.headers, body)
        query_id = query.params.get("query_id") or new_query_id()
        try:
            with self.server.turn(), self._running(query, changes) as answer:
                self._answer(answer, query, query_id)
        except (Refusal, ConnectionError, TimeoutError):
            raise
        except Exception as e:  # the engine's, with its message
            self._failed(str(e), query_id)

    def _running(self, query: Query, changes: bool) -> AbstractContextManager[Answer]:
        return self.server.engine.run(query, changes=changes, client=self.connection)

    def _answer(self, answer: Answer, query: Query, query_id: str) -> None:
        headers = {
            "X-ClickHouse-Query-Id": query_id,
            "X-ClickHouse-Server-Display-Name": "ettwatch",
            "X-ClickHouse-Timezone": "UTC",
        }
        if answer.form is not None:
            headers |= {"X-ClickHouse-Format": answer.form, "Content-Type": content_type(answer.form)}
        if answer.summary:
            headers["X-ClickHouse-Summary"] = json.dumps(answer.summary)
        encoding = None
        if query.flag("enable_http_compression"):
            encoding = accepted(self.headers.get("Accept-Encoding") or "")
        if answer.whole:
            self._whole(b"".join(answer.pieces), encoding, headers)
        else:
            self._stream(answer.pieces, encoding, headers)

    def _whole(self, data: bytes, encoding: str | None, headers: dict[str, str]) -> None:
        if encoding and len(data) > _SMALL:
            packer = compressor(encoding)
            data = packer.compress(data) + packer.flush()
            headers["Content-Encoding"] = encoding
        headers["Content-Length"] = str(len(data))
        self._head(200, headers)
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, pieces: Iterator[bytes], encoding: str | None, headers: dict[str, str]) -> None:
        chunked = self.request_version != "HTTP/1.0"
        if encoding:
            headers["Content-Encoding"] = encoding
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
        else:
            self.close_connection = True
        tag = secrets.token_hex(8)
        headers["X-ClickHouse-Exception-Tag"] = tag
        self._head(200, headers)
        if self.command == "HEAD":
            return
        packer = compressor(encoding) if encoding else None
        ends = True
        for piece in _told(pieces, tag):
            ends = not isinstance(piece, _Broken)
            self._chunk(packer.compress(piece) if packer else piece, chunked)
        if packer:
            self._chunk(packer.flush(), chunked)
        if chunked and ends:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = self.close_connection or not ends

    def _chunk(self, data: bytes, chunked: bool) -> None:
        if data:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, "".join(c if " " <= c <= "~" else "?" for c in value))
        if self.close_connection and "Connection" not in headers:
            self.send_header("Connection", "close")
        self.end_headers()

    def _plain(self, status: int, text: str, headers: dict[str, str]) -> None:
        data = text.encode("utf-8", "replace")
        self._head(status, {"Content-Type": "text/plain; charset=UTF-8", "Content-Length": str(len(data)), **headers})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _failed(self, message: str, query_id: str) -> None:
        code = code_of(message) or 1002
        text = message[max(message.find("Code: "), 0) :].strip()
        text = text if text.startswith("Code: ") else f"Code: {code}. DB::Exception: {text}"
        headers = {"X-ClickHouse-Exception-Code": str(code), "X-ClickHouse-Query-Id": query_id}
        self._plain(http_status(code), f"{text} (version {self.server.engine.version})\n", headers)

    def _refuse(self, refusal: Refusal, url_query: str) -> None:
        self._failed(f"Code: {refusal.code}. DB::Exception: {refusal}. ({refusal.name})", new_query_id())


class _Broken(bytes):
    """The last piece of a body that an error cut short."""


def _told(pieces: Iterator[bytes], tag: str) -> Iterator[bytes]:
    """Yield a body; if the engine fails in the middle, end with its message between marks that clients look for."""
    try:
        yield from pieces
    except Exception as e:  # the status is sent already
        text = " ".join(str(e).split()).encode()
        mark = tag.encode()
        yield _Broken(b"\r\n__exception__\r\n%b\r\n%b\n%d %b\r\n__exception__\r\n" % (mark, text, len(text) + 1, mark))


def quick(connection: socket.socket) -> None:
    """Answer a client for whom there is no room, and let it go."""
    text = b"Code: 762. DB::Exception: too many connections; try again. (HTTP_CONNECTION_LIMIT_REACHED)\n"
    head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    head += b"Retry-After: 1\r\nX-ClickHouse-Exception-Code: 762\r\n"
    connection.settimeout(1)
    connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(text) + text)
