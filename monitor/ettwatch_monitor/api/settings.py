"""How the monitor is set up, as a value."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

__all__ = ["Limits", "MonitorSettings", "Network", "Role", "Token"]

Role: TypeAlias = Literal["viewer", "operator"]
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

HERE: Final = ("localhost", "127.0.0.1", "::1")
"""Names of this machine, by which a page may ask without anybody having set that up."""


@dataclass(frozen=True, slots=True)
class Token:
    """Who may ask by a token. The token itself is not kept.

    Attributes:
        user: Whose it is.
        role: What it is good for.
        digest: SHA-256 of the token.
    """

    user: str
    role: Role
    digest: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be asked for.

    Attributes:
        body_bytes: Longest body of a request.
        requests_s: Requests of one address a second, on average.
        burst: ... at once.
        at_once: Questions that the database answers at one time.
        waiting: Questions that may wait for it.
        viewers: Live viewers.
        connections: Open connections.
        head_s: How long (seconds) a request may take to arrive.
        send_s: How long a client may take to accept a piece of an answer.
        keep_s: How long an answer is good for the next one who asks the same.
        sql_s: Longest time of a query of the SQL view.
        sql_rows: Most rows of its answer.
        sql_bytes: Most memory of it.
        export_rows: Most rows of an export.
    """

    body_bytes: int = 64 << 10
    requests_s: float = 50.0
    burst: int = 200
    at_once: int = 4
    waiting: int = 64
    viewers: int = 500
    connections: int = 1_000
    head_s: float = 10.0
    send_s: float = 20.0
    keep_s: float = 2.0
    sql_s: float = 15.0
    sql_rows: int = 10_000
    sql_bytes: int = 1 << 30
    export_rows: int = 100_000


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """Who may ask, and how much.

    Attributes:
        tokens: Who may ask by a token; empty where nobody needs one.
        proxy_header: Header in which a reverse proxy names the user; None where there is none.
        proxies: From where that header is believed.
        operators: Users of the proxy who are operators; the others are viewers.
        hosts: Names under which the monitor is reached, besides those of this machine; `*` is every one.
        secure: The page is reached by https only, through a proxy: cookies are marked so.
        outbox: The file in which `ettwatch alerts` keeps silences; None where silences cannot be kept.
        audit: File to which every change is written, a line of JSON each; None for the log only.
        every_s: Seconds from one look at the database to the next, for live viewers.
        demo: The data are made up.
        limits: How much may be asked for.
    """

    tokens: tuple[Token, ...] = ()
    proxy_header: str | None = None
    proxies: tuple[Network, ...] = ()
    operators: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    secure: bool = False
    outbox: Path | None = None
    audit: Path | None = None
    every_s: float = 2.0
    demo: bool = False
    limits: Limits = Limits()

    @property
    def guarded(self) -> bool:
        """Whether anybody has to say who they are."""
        return bool(self.tokens) or self.proxy_header is not None
