"""Alerts, and the silences that `ettwatch alerts` heeds."""

import time
from typing import Annotated, Literal

from anyio import to_thread
from fastapi import APIRouter, Depends, HTTPException, Request

from ettwatch_monitor.alerts.deliver import MatcherError, Outbox, OutboxError, Silence, parse_matchers
from ettwatch_monitor.api.access import Identity
from ettwatch_monitor.api.backend import Backend, BackendOf, Who, operator
from ettwatch_monitor.api.shapes import Alerts, SilenceBody, SilenceRow
from ettwatch_monitor.queries import list_alerts

__all__ = ["can_silence", "router"]

router = APIRouter(tags=["alerts"])

Operator = Annotated[Identity, Depends(operator)]
_ELSEWHERE = (
    "silences cannot be kept here; start the monitor with --alert-state DIR, the folder of `ettwatch alerts run`"
)


def can_silence(backend: Backend, asked: Identity) -> bool:
    """Whether silences can be kept, and by this one."""
    return asked.role == "operator" and _there(backend)


def _there(backend: Backend) -> bool:
    outbox = backend.settings.outbox
    return outbox is not None and outbox.is_file()


@router.get("/alerts")
async def get_alerts(backend: BackendOf, asked: Who, status: Literal["firing", "resolved"] | None = None) -> Alerts:
    """Answer the newest state of each alert, and the silences."""
    found = await backend.desk.ask(("alerts", status), lambda store: list_alerts(store, status))
    silences = await to_thread.run_sync(_silences, backend) if _there(backend) else []
    return Alerts(alerts=found, silences=silences, can_silence=can_silence(backend, asked))


@router.post("/alerts/silences", status_code=201)
async def post_silence(request: Request, backend: BackendOf, asked: Operator, body: SilenceBody) -> SilenceRow:
    """Keep a silence. Needs the role operator."""
    if not _there(backend):
        raise HTTPException(409, _ELSEWHERE)
    try:
        matchers = parse_matchers(body.matchers)
    except MatcherError as error:
        raise HTTPException(422, f"matchers: {error}") from None
    now = time.time_ns() // 1_000
    silence = Silence(matchers, now + int(body.hours * 3.6e9), now, body.comment)
    text = ", ".join(map(str, matchers))
    number = await to_thread.run_sync(_keep, backend, silence, asked.user)
    backend.audit.told(
        asked,
        _address(request),
        "silence",
        "kept",
        number=number,
        matchers=text,
        hours=body.hours,
        comment=body.comment,
    )
    return SilenceRow(number=number, matchers=text, starts_us=now, ends_us=silence.ends_at, comment=body.comment)


@router.delete("/alerts/silences/{number}", status_code=204)
async def delete_silence(request: Request, backend: BackendOf, asked: Operator, number: int) -> None:
    """End a silence. Needs the role operator."""
    if not _there(backend):
        raise HTTPException(409, _ELSEWHERE)
    if not 0 < number < 1 << 62 or not await to_thread.run_sync(_end, backend, number, asked.user):
        raise HTTPException(404, "there is no such silence")
    backend.audit.told(asked, _address(request), "silence", "ended", number=number)


def _silences(backend: Backend) -> list[SilenceRow]:
    with _opened(backend) as outbox:
        return [
            SilenceRow(
                number=silence.number or 0,
                matchers=", ".join(map(str, silence.matchers)),
                starts_us=silence.starts_at,
                ends_us=silence.ends_at,
                comment=silence.comment,
            )
            for silence in outbox.silences(time.time_ns() // 1_000)
        ]


def _keep(backend: Backend, silence: Silence, by: str) -> int:
    with _opened(backend) as outbox:
        return outbox.silence(silence, by)


def _end(backend: Backend, number: int, by: str) -> bool:
    with _opened(backend) as outbox:
        return outbox.unsilence(number, by, now=time.time_ns() // 1_000)


def _opened(backend: Backend) -> Outbox:
    assert backend.settings.outbox is not None
    try:
        return Outbox(backend.settings.outbox)
    except OutboxError:
        raise HTTPException(503, "the file of silences cannot be opened now") from None


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None
