"""Who asks, and what they may do: by a token, a session (a cookie that a token was given for), or a proxy's word."""

import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ettwatch_monitor.api.settings import MonitorSettings, Network, Role
from ettwatch_monitor.api.tokens import digest_of

__all__ = ["COOKIE", "Access", "Denied", "Identity", "trusted"]

COOKIE: Final = "ettwatch_session"
_SESSION_S: Final = 12 * 3_600
_MOST_SESSIONS: Final = 10_000
_LOCAL: Final = "local"


class Denied(Exception):
    """Who asks may not. One line that says why; no secret is in it.

    Attributes:
        status: 401 where nobody said who they are, 403 where it is known and not enough.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks.

    Attributes:
        user: Their name.
        role: What they may do.
        auth: How it is known: none, token, session or proxy.
        csrf: What a change has to be sent with, as X-CSRF-Token; None for tokens, which no other site can send.
    """

    user: str
    role: Role
    auth: str
    csrf: str | None


class Access:
    """Tells who asks.

    Args:
        settings: Who may ask.
        monotonic: A clock in seconds, for sessions.
    """

    def __init__(self, settings: MonitorSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._key = secrets.token_bytes(32)
        self._sessions: OrderedDict[bytes, tuple[Identity, float]] = OrderedDict()

    def of(self, headers: Mapping[str, str], cookie: str | None, address: str | None) -> Identity:
        """Return who sent a request.

        Args:
            headers: Of the request; names in lower case.
            cookie: The value of the cookie `ettwatch_session`.
            address: From where it came; None where that is not known.

        Raises:
            Denied: Nobody who may ask.
        """
        settings = self._settings
        if not settings.guarded:
            return Identity(_LOCAL, "operator", "none", self._csrf(_LOCAL))
        bearer = headers.get("authorization")
        if bearer is not None:
            return self._by_token(bearer)
        if settings.proxy_header is not None and trusted(address, settings.proxies):
            user = headers.get(settings.proxy_header.lower(), "").strip()
            if user:
                role: Role = "operator" if user in settings.operators else "viewer"
                return Identity(user, role, "proxy", self._csrf(user))
        known = self._session(cookie)
        if known is not None:
            return known
        raise Denied(401, "say who you are: send a token as `Authorization: Bearer TOKEN`, or log in on the page")

    def log_in(self, secret: str) -> tuple[str, Identity]:
        """Return a cookie's value for a token, and whose it is. Raises Denied."""
        asked = self._by_token(f"Bearer {secret}")
        value = secrets.token_urlsafe(32)
        identity = Identity(asked.user, asked.role, "session", self._csrf(value))
        self._sessions[digest_of(value)] = (identity, self._monotonic() + _SESSION_S)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return value, identity

    def log_out(self, cookie: str | None) -> None:
        """End a session; does nothing where there is none."""
        if cookie is not None:
            self._sessions.pop(digest_of(cookie), None)

    def _by_token(self, bearer: str) -> Identity:
        kind, _, secret = bearer.partition(" ")
        given = digest_of(secret.strip())
        found = None
        # All are looked at, whichever fits: the time tells nothing.
        for token in self._settings.tokens:
            if hmac.compare_digest(token.digest, given):
                found = token
        if found is None or kind.lower() != "bearer":
            raise Denied(401, "this token is not known here; ask whoever runs the monitor for one")
        return Identity(found.user, found.role, "token", None)

    def _session(self, cookie: str | None) -> Identity | None:
        if cookie is None:
            return None
        key = digest_of(cookie)
        found = self._sessions.get(key)
        if found is None:
            return None
        identity, ends = found
        if self._monotonic() >= ends:
            del self._sessions[key]
            return None
        return identity

    def _csrf(self, who: str) -> str:
        return hmac.new(self._key, who.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def trusted(address: str | None, proxies: Iterable[Network]) -> bool:
    """Tell whether an address is that of a proxy whose word counts."""
    try:
        at = ipaddress.ip_address(address or "")
    except ValueError:
        return False
    if isinstance(at, ipaddress.IPv6Address) and at.ipv4_mapped is not None:
        at = at.ipv4_mapped
    return any(at in network for network in proxies)
