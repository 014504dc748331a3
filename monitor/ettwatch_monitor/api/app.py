"""The application: routes, errors as answers, and the guard around all of it."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException as PlainHTTPException

from ettwatch_clickhouse import Store
from ettwatch_monitor.api import alertroutes, exportroutes, fleetroutes, jobroutes, serviceroutes
from ettwatch_monitor.api.access import Access
from ettwatch_monitor.api.audit import Audit
from ettwatch_monitor.api.backend import Backend
from ettwatch_monitor.api.desk import Busy, Desk, Failed
from ettwatch_monitor.api.guard import Guard
from ettwatch_monitor.api.live import Hub
from ettwatch_monitor.api.pageroutes import page_answer
from ettwatch_monitor.api.settings import MonitorSettings
from ettwatch_monitor.api.shapes import Problem
from ettwatch_monitor.api.sqlview import Asker
from ettwatch_monitor.api.static import Assets

__all__ = ["STATIC", "make_app"]

STATIC: Final = Path(__file__).parents[1] / "web" / "static"
"""Where the built page lies."""

PREFIX: Final = "/api/v1"
_LOG: Final = logging.getLogger(__name__)


def make_app(
    store: Store,
    asker: Asker,
    settings: MonitorSettings,
    *,
    version: str,
    static: Path = STATIC,
) -> Guard:
    """Return the application, for an ASGI server.

    Args:
        store: The database.
        asker: Asks what is asked in the SQL view.
        settings: Who may ask, and how much.
        version: Of ettwatch.
        static: Where the built page lies.

    Raises:
        OSError: The file of the audit cannot be written to.
    """
    desk = Desk(store, settings.limits)
    hub = Hub(desk, settings.every_s)
    backend = Backend(settings, desk, Access(settings), asker, hub, Audit(settings.audit), Assets(static), version)

    async def ends() -> None:
        await hub.close()
        await to_thread.run_sync(asker.close)
        await desk.close()

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        await ends()

    app = FastAPI(
        title="ettwatch monitor",
        version=version,
        description="The numbers of the page. They are those of SQL and of `ettwatch report`.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
        responses={status: {"model": Problem} for status in (400, 401, 403, 404, 422, 429, 503)},
    )
    app.state.backend = backend
    for part in (fleetroutes, jobroutes, alertroutes, serviceroutes, exportroutes):
        app.include_router(part.router, prefix=PREFIX)
    app.include_router(exportroutes.metrics)
    app.add_api_route("/{path:path}", page_answer, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5)
    _tell_errors(app)
    return Guard(app, settings, ends=ends)


def _tell_errors(app: FastAPI) -> None:
    @app.exception_handler(PlainHTTPException)
    async def told(_: Request, error: PlainHTTPException) -> Response:
        return _problem(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0] if error.errors() else {"loc": (), "msg": "it is malformed"}
        where = " ".join(str(part) for part in first["loc"])
        if first["loc"] in (("body",), ("body", 0)) or first.get("type") == "json_invalid":
            # It was sent as a form, as curl does by itself, or is no JSON.
            return _problem(422, "body: it is no JSON object; send one, with the header Content-Type: application/json")
        return _problem(422, f"{where}: {first['msg']}"[:300])

    @app.exception_handler(Busy)
    async def busy(_: Request, error: Busy) -> Response:
        return _problem(503, str(error), {"Retry-After": "1"})

    @app.exception_handler(Failed)
    async def failed(_: Request, error: Failed) -> Response:
        return _problem(503 if error.passing else 500, str(error), {"Retry-After": "2"} if error.passing else {})

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        _LOG.error("a request failed", exc_info=error)
        return _problem(500, "something failed here; the log of the monitor says what")


def _problem(status: int, why: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(Problem(error=why).model_dump(), status, headers)
