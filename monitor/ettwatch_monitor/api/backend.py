"""What the routes share, and what they ask of a request: who sent it, and of what time and whose jobs it speaks."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, TypeVar, cast

from fastapi import Depends, HTTPException, Query, Request

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.api.access import COOKIE, Access, Denied, Identity
from ettwatch_monitor.api.audit import Audit
from ettwatch_monitor.api.desk import Desk
from ettwatch_monitor.api.guard import SLASH
from ettwatch_monitor.api.live import Hub
from ettwatch_monitor.api.settings import MonitorSettings
from ettwatch_monitor.api.sqlview import Asker
from ettwatch_monitor.api.static import Assets
from ettwatch_monitor.queries import DAY_US, Scope, Span, SpanError, read_owners

__all__ = [
    "Asked",
    "Backend",
    "BackendOf",
    "ScopeOf",
    "SpanOf",
    "Who",
    "checked_change",
    "name_of",
    "operator",
]

T = TypeVar("T")

_NAME: Final = 512
_LATEST: Final = 4_000_000_000_000_000
_OWNERS_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Backend:
    """What the routes share."""

    settings: MonitorSettings
    desk: Desk
    access: Access
    asker: Asker
    hub: Hub
    audit: Audit
    assets: Assets
    version: str

    async def owners(self) -> Owners:
        """Return the rules of ownership. Raises Busy, Failed."""
        return await self.desk.ask("owners", read_owners, keep_s=_OWNERS_S)

    async def owned(self, key: object, question: Callable[[Store, Owners], T]) -> T:
        """Ask a question that needs the rules of ownership. Raises Busy, Failed."""
        owners = await self.owners()
        return await self.desk.ask(key, partial(_with, question, owners))


def _with(question: Callable[[Store, Owners], T], owners: Owners, store: Store) -> T:
    return question(store, owners)


def backend_of(request: Request) -> Backend:
    """Return the back end of the application."""
    return cast(Backend, request.app.state.backend)


BackendOf = Annotated[Backend, Depends(backend_of)]


def who(request: Request, backend: BackendOf) -> Identity:
    """Return who asks. Answers 401 where nobody may."""
    client = request.client
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        return backend.access.of(headers, request.cookies.get(COOKIE), client.host if client else None)
    except Denied as denied:
        raise HTTPException(denied.status, str(denied), {"WWW-Authenticate": "Bearer"}) from None


Who = Annotated[Identity, Depends(who)]


def checked_change(request: Request, asked: Who) -> Identity:
    """Return who wants to change something. Answers 403 to what another site may have sent."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise HTTPException(403, "this request was sent by another site")
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise HTTPException(403, "this request was sent by another site")
    if asked.csrf is not None and request.headers.get("x-csrf-token") != asked.csrf:
        raise HTTPException(403, "send what /api/v1/me tells as csrf in the header X-CSRF-Token")
    return asked


Asked = Annotated[Identity, Depends(checked_change)]


def operator(asked: Asked) -> Identity:
    """Return an operator who wants to change something. Answers 403 to others."""
    if asked.role != "operator":
        raise HTTPException(403, f"{asked.user} is a viewer; ask an operator")
    return asked


def span_of(
    start: Annotated[int | None, Query(alias="from", ge=0, le=_LATEST, description="µs since the epoch")] = None,
    end: Annotated[int | None, Query(alias="to", ge=0, le=_LATEST, description="µs since the epoch")] = None,
) -> Span:
    """Return the time that is asked for, in whole hours: until now where no end is told, and for seven days."""
    until = end if end is not None else time.time_ns() // 1_000
    since = start if start is not None else until - 7 * DAY_US
    try:
        return Span.around(since, until)
    except SpanError as error:
        raise HTTPException(422, str(error)) from None


SpanOf = Annotated[Span, Depends(span_of)]

_Name = Annotated[str | None, Query(max_length=_NAME, description="left out: all; empty: those that name none")]


def scope_of(team: _Name = None, model: _Name = None, cluster: _Name = None) -> Scope:
    """Return whose jobs are asked for."""
    return Scope(team, model, cluster)


ScopeOf = Annotated[Scope, Depends(scope_of)]


def name_of(part: str) -> str:
    """Return the name that a part of a path stands for. Answers 414 where it is longer than a name can be."""
    name = part.replace(SLASH, "/")
    if len(name) > _NAME:
        raise HTTPException(414, f"a name has at most {_NAME} characters")
    return name
