"""One POST over HTTP, and what its answer means for a message."""

import base64
import binascii
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3

from ettwatch_monitor.alerts.deliver.channel import Refused, Unavailable
from ettwatch_monitor.alerts.deliver.secret import Secret

__all__ = ["Login", "Poster"]

_SAID: Final = 200
_LONGEST_ASKED_S: Final = 3_600
_NEVER: Final = frozenset({400, 413, 415, 422})
"""The receiver has read the message, and does not want it. All else may be put right."""

# At the level DEBUG it writes the path of each address, which may be a secret.
logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)


@dataclass(frozen=True, slots=True)
class Login:
    """How to log in: with a token, or as a user. Neither: not at all."""

    token: Secret | None = None
    user: str | None = None
    password: Secret | None = None

    def headers(self) -> dict[str, str]:
        """Return the header, where there is one. Raises Unavailable where the secret cannot be read."""
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token.read()}"}
        if self.user is not None:
            pair = f"{self.user}:{self.password.read() if self.password else ''}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        return {}


class Poster:
    """Posts JSON to one address.

    Args:
        url: The address; it may be a secret.
        login: How to log in.
        ca: File with the certificates to trust; None for those of the system.
        timeout_s: How long the receiver may take, in seconds.
    """

    def __init__(self, url: Secret, login: Login, ca: str | None = None, timeout_s: float = 10.0) -> None:
        self._url = url
        self._login = login
        self._ca = ca
        self._timeout_s = timeout_s
        self._pool: urllib3.PoolManager | None = None

    def post(self, body: bytes, headers: Mapping[str, str] | None = None, path: str = "") -> None:
        """Send a body; return when the receiver has taken it.

        Raises:
            Unavailable: It may be sent again.
            Refused: The receiver does not want it.
        """
        url = self._url.read()
        login = self._login.headers()
        secrets = [url, *login.values(), *(value.partition(" ")[2] for value in login.values())]
        told = {"Content-Type": "application/json", "User-Agent": "ettwatch", **login, **(headers or {})}
        where = _where(url)
        if not url.startswith(("http://", "https://")):
            raise Unavailable(f"cannot post to {where}: the address is malformed; write http://HOST:PORT/PATH")
        try:
            # No redirect: a secret must not go on to where somebody points.
            answer = self._started().request(
                "POST",
                url.rstrip("/") + path if path else url,
                body=body,
                headers=told,
                redirect=False,
                retries=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, ValueError, OSError) as error:
            raise Unavailable(f"cannot post to {where}: {_why(error)}") from None
        try:
            _judge(answer, where, secrets)
        finally:
            answer.close()

    def close(self) -> None:
        """Let go of connections."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.clear()

    def _started(self) -> urllib3.PoolManager:
        if self._pool is None:
            limits = urllib3.Timeout(connect=min(5.0, self._timeout_s), read=self._timeout_s)
            more: dict[str, Any] = {} if self._ca is None else {"ca_certs": self._ca}
            self._pool = urllib3.PoolManager(num_pools=2, timeout=limits, cert_reqs="CERT_REQUIRED", **more)
        return self._pool


def _judge(answer: urllib3.BaseHTTPResponse, where: str, secrets: Sequence[str]) -> None:
    status = answer.status
    if 200 <= status < 300:
        return
    try:
        said = " ".join(answer.read1(_SAID).decode("utf-8", "replace").split())
    except (urllib3.exceptions.HTTPError, OSError, binascii.Error):
        said = ""
    for secret in secrets:
        said = said.replace(secret, "...") if secret else said
    what = f"{where} answers {status}" + (f": {said}" if said else "")
    if status in _NEVER:
        raise Refused(what)
    if 300 <= status < 400:
        what += "; name the address that it points to"
    raise Unavailable(what, _asked(answer.headers.get("Retry-After")))


def _asked(text: str | None) -> int:
    """For how long not to call, by Retry-After (µs); 0 where it says nothing that can be read."""
    if text is None or not text.strip().isascii() or not text.strip().isdecimal():
        return 0
    return min(int(text.strip()[:9]), _LONGEST_ASKED_S) * 1_000_000


def _where(url: str) -> str:
    """The host of an address: its path may be a secret."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.hostname}{port}" if parts.hostname else "an address that is none"
    except ValueError:
        return "an address that is none"


def _why(error: Exception) -> str:
    """What went wrong, without the address: a message of urllib3 may hold all of it."""
    match error:
        case urllib3.exceptions.NameResolutionError():
            return "there is no such host; is the name right?"
        case urllib3.exceptions.NewConnectionError():
            return "nothing listens there"
        case urllib3.exceptions.ConnectTimeoutError():
            return "nothing answers there"
        case urllib3.exceptions.TimeoutError():
            return "it takes too long to answer"
        case urllib3.exceptions.SSLError():
            return "the encrypted connection was not made; check https:// and ca"
        case urllib3.exceptions.LocationValueError() | ValueError():
            return "the address is malformed; write http://HOST:PORT/PATH"
        case _:
            return (
                "the connection was lost"
                if isinstance(error, urllib3.exceptions.ProtocolError)
                else type(error).__name__
            )
