"""Who may ask: programs of this machine, not web pages that a browser on it happens to show."""

from base64 import b64decode
from email.message import Message
from hmac import compare_digest
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qs, urlsplit

from ettwatch_clickhouse.http.fence import Refusal

__all__ = ["Guard", "is_loopback"]


_OWN_SITES: Final = ("none", "same-origin")
"""What a browser says of an address that somebody typed, and of what the answer to it asks for."""


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address means this machine itself."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


class Guard:
    """Checks requests before anything is done for them.

    Args:
        loopback: The front listens on loopback only; then a request must name it so. A page that makes its own name
            point to this machine is found out by that.
        password: What clients have to give; None if they need not give anything.
    """

    def __init__(self, *, loopback: bool, password: str | None) -> None:
        self._loopback = loopback
        self._password = password

    def check(self, headers: Message, url_query: str) -> None:
        """Raise Refusal if a request is not to be answered.

        Args:
            headers: Of the request.
            url_query: What follows the ``?`` of its address.
        """
        host = headers.get("Host") or "localhost"
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError as e:
            raise Refusal(36, "BAD_ARGUMENTS", f"Host {host!r} is no host: {e}") from None
        if self._loopback and not is_loopback(name):
            raise Refusal(497, "ACCESS_DENIED", f"Host {host} is not this machine; use 127.0.0.1 or localhost")
        origin = headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            raise Refusal(497, "ACCESS_DENIED", f"requests from web pages ({origin}) are refused")
        site = headers.get("Sec-Fetch-Site")  # all that browsers tell of a page's pictures, scripts, frames and links
        if site is not None and site.lower() not in _OWN_SITES:
            raise Refusal(497, "ACCESS_DENIED", f"requests from web pages (Sec-Fetch-Site: {site}) are refused")
        if self._password is not None and not compare_digest(_given(headers, url_query), self._password.encode()):
            raise Refusal(516, "AUTHENTICATION_FAILED", "Authentication failed: password is incorrect")


def _given(headers: Message, url_query: str) -> bytes:
    kind, _, value = (headers.get("Authorization") or "").partition(" ")
    if kind.lower() == "basic":
        try:
            return b64decode(value, validate=True).partition(b":")[2]
        except ValueError:
            return b""
    if "X-ClickHouse-Key" in headers:
        return headers["X-ClickHouse-Key"].encode()
    return parse_qs(url_query).get("password", [""])[0].encode()
