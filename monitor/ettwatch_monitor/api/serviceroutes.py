"""Who asks, logging in and out, SQL, what happens live, advice."""

import importlib
import importlib.util
import time
from types import ModuleType
from typing import Annotated, Any, Final

from anyio import to_thread
from fastapi import APIRouter, Body, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse

from ettwatch_monitor.api.access import COOKIE, Denied
from ettwatch_monitor.api.alertroutes import can_silence
from ettwatch_monitor.api.backend import Asked, BackendOf, ScopeOf, SpanOf, Who
from ettwatch_monitor.api.shapes import LoginBody, Me, SqlAnswer, SqlBody
from ettwatch_monitor.api.sqlview import SqlRefused
from ettwatch_monitor.queries import read_names

__all__ = ["router"]

router = APIRouter(tags=["service"])

_ADVICE: Final = "ettwatch_monitor.advice"
_ADVICE_KEPT_S: Final = 60.0
_NAMES_S: Final = 10.0


@router.get("/me")
async def get_me(backend: BackendOf, asked: Who) -> Me:
    """Answer who asks, what they may do, and what there is to choose from."""
    names = await backend.desk.ask("names", read_names, keep_s=_NAMES_S)
    owners = await backend.owners()
    return Me(
        user=asked.user,
        role=asked.role,
        auth=asked.auth,
        csrf=asked.csrf,
        can_silence=can_silence(backend, asked),
        can_sql=True,
        can_advise=importlib.util.find_spec(_ADVICE) is not None,
        demo=backend.settings.demo,
        version=backend.version,
        now_us=time.time_ns() // 1_000,
        first_us=names.first_us,
        last_us=names.last_us,
        teams=names.teams,
        models=names.models,
        clusters=names.clusters,
        owners=sorted({rule.owner.team for rule in owners.rules}),
    )


@router.post("/login", status_code=204)
async def post_login(request: Request, backend: BackendOf, body: LoginBody, response: Response) -> None:
    """Give a token for a cookie, which lasts 12 hours at most."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise HTTPException(403, "this request was sent by another site")
    try:
        value, _ = backend.access.log_in(body.token)
    except Denied as denied:
        raise HTTPException(denied.status, str(denied)) from None
    response.set_cookie(
        COOKIE, value, max_age=12 * 3_600, httponly=True, samesite="strict", secure=backend.settings.secure, path="/"
    )


@router.delete("/login", status_code=204)
async def delete_login(request: Request, backend: BackendOf, asked: Asked, response: Response) -> None:
    """End the session."""
    backend.access.log_out(request.cookies.get(COOKIE))
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=backend.settings.secure)


@router.post("/sql")
async def post_sql(backend: BackendOf, asked: Asked, body: SqlBody) -> SqlAnswer:
    """Answer a query. Nothing can be changed, and time, memory and rows are limited."""
    try:
        return await to_thread.run_sync(backend.asker.ask, body.query)
    except SqlRefused as refused:
        raise HTTPException(400, str(refused)) from None


@router.get("/live", response_class=StreamingResponse)
async def get_live(backend: BackendOf, asked: Who) -> StreamingResponse:
    """Send what happens, as server-sent events `live` (see the shape Live)."""
    if backend.hub.viewers >= backend.settings.limits.viewers:
        raise HTTPException(503, "too many viewers watch; the page asks again by itself")
    return StreamingResponse(backend.hub.events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


_Job = Annotated[str | None, Query(max_length=512, description="advice for this job; the times are its own")]
_Stage = Annotated[str | None, Query(max_length=200, description="only what gives back time of this stage")]
_Owner = Annotated[str | None, Query(max_length=512, description="only what this owner can do")]


@router.get("/advice")
async def get_advice(
    backend: BackendOf,
    asked: Who,
    span: SpanOf,
    scope: ScopeOf,
    job: _Job = None,
    stage: _Stage = None,
    owner: _Owner = None,
) -> dict[str, Any]:
    """Answer the advice for a window, or for one job; docs/advice.md says what is in it."""
    advice = _advice()
    owners = await backend.owners()
    about = advice.About(job=job, stage=stage, owner=owner)

    def question(store: Any) -> Any:
        return advice.advice_of(store, span.start, span.end, owners, **scope.told(), about=about)

    key = ("advice", about) if job is not None else ("advice", span, scope, about)
    try:
        found: dict[str, Any] = await backend.desk.ask(key, question, keep_s=_ADVICE_KEPT_S)
    except advice.NoJobError as error:
        raise HTTPException(404, str(error)) from None
    except advice.AdviceError as error:
        raise HTTPException(422, str(error)) from None
    return found


@router.post("/advice/what-if")
async def post_what_if(
    backend: BackendOf, asked: Asked, span: SpanOf, body: Annotated[dict[str, Any], Body()]
) -> dict[str, Any]:
    """Answer what would be if some numbers were others; docs/advice.md says how they are written."""
    advice = _advice()
    try:
        found: dict[str, Any] = await backend.desk.ask(
            None, lambda store: advice.what_if_of(store, span.start, span.end, body)
        )
    except advice.AdviceError as error:
        raise HTTPException(422, str(error)) from None
    return found


def _advice() -> ModuleType | Any:
    """The module of advice. Answers 404 where it is not installed."""
    try:
        return importlib.import_module(_ADVICE)
    except ModuleNotFoundError:
        raise HTTPException(404, "there is no advice: the module ettwatch_monitor.advice is not installed") from None
