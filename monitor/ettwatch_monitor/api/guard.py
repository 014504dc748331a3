"""What stands before every request: who is meant, how much may be sent, how often; and the headers of each answer."""

import asyncio
import contextlib
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import unquote

from ettwatch_monitor.api.access import trusted
from ettwatch_monitor.api.settings import HERE, MonitorSettings

__all__ = ["SLASH", "Guard"]

SLASH: Final = "\udc2f"
"""Stands in a path for a slash that belongs to a name (`%2F`): no text that is sent can hold it."""

_MOST_ADDRESSES: Final = 20_000
_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

Message = MutableMapping[str, Any]
App = Callable[..., Any]


class _TooMuch(Exception):
    pass


class _Gone(Exception):
    """The client accepts nothing any more."""


class Guard:
    """An ASGI application around another one.

    Args:
        app: The other one.
        settings: The limits, and by which names the monitor is reached.
        monotonic: A clock in seconds.
        ends: Ends the answers that would go on for ever.
    """

    def __init__(
        self,
        app: App,
        settings: MonitorSettings,
        monotonic: Callable[[], float] = time.monotonic,
        ends: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._app = app
        self._ends = ends
        self._ending = False
        self._settings = settings
        self._limits = settings.limits
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def end(self) -> None:
        """Let the answers end that would go on for ever: the server is about to."""
        self._ending = True
        if self._ends is not None:
            await self._ends()

    async def __call__(self, scope: Message, receive: App, send: App) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: there are none here
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {bytes(name).lower(): bytes(value) for name, value in scope["headers"]}
        answer = _Answer(send, self._settings)
        refused = self._refused(scope, headers)
        if refused is not None:
            await _problem(answer, *refused)
            return
        scope["path"] = SLASH.join(unquote(part) for part in _parts(scope))
        try:
            body = await self._body(headers, receive)
        except _TooMuch:
            await _problem(answer, 413, f"the body is longer than {self._limits.body_bytes} bytes")
            return
        except TimeoutError:
            await _problem(answer, 408, "the body did not arrive in time")
            return
        if body is None:
            return  # the client is gone
        try:
            with contextlib.suppress(_Gone):  # the server ends the connection, as the answer is not whole
                await self._app(scope, _replayed(body, receive), answer)
        except asyncio.CancelledError:
            if not self._ending:
                raise
            if not answer.begun:
                await _problem(answer, 503, "the monitor ends")

    def _refused(self, scope: Message, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        client = scope.get("client")
        if not self._may_come(self._from(client[0] if client else "", headers)):
            return 429, "too many requests; wait a little"
        hosts = [bytes(value) for name, value in scope["headers"] if bytes(name).lower() == b"host"]
        if len(hosts) != 1 or not self._named(hosts[0].decode("latin-1")):
            # Without this, any page that a user opens could read what is here, under a name that leads to this machine.
            return 421, "this monitor is not reached by that name; start it with --host NAME"
        if b"\0" in bytes(scope.get("raw_path") or b"") or len(bytes(scope.get("query_string") or b"")) > 8_192:
            return 414, "the address is too long"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._limits.body_bytes:
            return 413, f"the body is longer than {self._limits.body_bytes} bytes"
        return None

    def _from(self, address: str, headers: dict[bytes, bytes]) -> str:
        """Whose request it is: a proxy's word counts where it comes from one."""
        told = headers.get(b"x-forwarded-for", b"").decode("latin-1").rpartition(",")[2].strip()
        return told[:64] if told and trusted(address, self._settings.proxies) else address

    def _named(self, host: str) -> bool:
        if "*" in self._settings.hosts:
            return True
        name = host.lower()
        name = name[1 : name.find("]")] if name.startswith("[") else name.partition(":")[0]
        return name in HERE or name in self._settings.hosts

    def _may_come(self, address: str) -> bool:
        """A bucket for each address: it fills at a steady rate, and each request takes one."""
        now = self._monotonic()
        left, at = self._buckets.pop(address, (float(self._limits.burst), now))
        left = min(self._limits.burst, left + (now - at) * self._limits.requests_s)
        may = left >= 1
        self._buckets[address] = (left - 1 if may else left, now)
        while len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return may

    async def _body(self, headers: dict[bytes, bytes], receive: App) -> bytes | None:
        """The whole body; None where the client hung up."""
        if headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers:
            return b""
        body = bytearray()
        async with asyncio.timeout(self._limits.head_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > self._limits.body_bytes:
                    raise _TooMuch
                if not message.get("more_body"):
                    return bytes(body)


class _Answer:
    """Sends with the headers of every answer; a client that accepts nothing is let go."""

    def __init__(self, send: App, settings: MonitorSettings) -> None:
        self._send = send
        self._settings = settings
        self.begun = False

    async def __call__(self, message: Message) -> None:
        """Send a part of the answer. Raises _Gone."""
        if message["type"] == "http.response.start":
            self.begun = True
            there = {bytes(name).lower() for name, _ in message.get("headers", ())}
            more = {"cache-control": "no-store", **_HEADERS}
            if self._settings.secure:
                more["strict-transport-security"] = "max-age=31536000"
            message["headers"] = [
                *message.get("headers", ()),
                *((k.encode(), v.encode()) for k, v in more.items() if k.encode() not in there),
            ]
        try:
            async with asyncio.timeout(self._settings.limits.send_s):
                await self._send(message)
        except TimeoutError:
            raise _Gone from None


def _parts(scope: Message) -> list[str]:
    """The path, cut where a name holds a slash."""
    raw = bytes(scope.get("raw_path") or scope["path"].encode("utf-8", "replace")).partition(b"?")[0].decode("latin-1")
    return raw.replace("%2f", "%2F").split("%2F")


def _replayed(body: bytes, receive: App) -> App:
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            message: Message = await receive()
            return message
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _problem(send: App, status: int, why: str) -> None:
    body = json.dumps({"error": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
