"""Files to take away: a job as a trace, tables as CSV or Parquet, and figures for Prometheus."""

import json
import re
import time
from typing import Annotated, Final, Literal
from urllib.parse import quote

from anyio import to_thread
from fastapi import APIRouter, Depends, HTTPException, Query
from fastapi.responses import Response

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.api.backend import BackendOf, ScopeOf, SpanOf, Who, name_of
from ettwatch_monitor.api.fleetroutes import By, too_fine
from ettwatch_monitor.api.gauges import gauges
from ettwatch_monitor.api.jobroutes import missing, sorted_by, wanted_of
from ettwatch_monitor.api.tablefile import KINDS, Form, flat, table_file
from ettwatch_monitor.queries import (
    DAY_US,
    HOUR_US,
    WEEK_US,
    Scope,
    Span,
    Wanted,
    all_jobs,
    count_firing,
    fleet,
    series,
    timeline,
    trace,
)

__all__ = ["metrics", "router"]

router = APIRouter(prefix="/export", tags=["export"])
metrics = APIRouter(tags=["export"])

_METRICS_S: Final = 15.0
_STEPS: Final = {"hour": HOUR_US, "day": DAY_US, "week": WEEK_US, "auto": None}


@router.get("/jobs/{job}/trace.json", response_class=Response)
async def get_trace(backend: BackendOf, asked: Who, job: str) -> Response:
    """Answer a job as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing."""
    name = name_of(job)
    found = await backend.desk.ask(("timeline", name, None, None), lambda store: timeline(store, name))
    if found is None:
        raise await missing(backend, name)
    body = await to_thread.run_sync(lambda: json.dumps(trace(found), separators=(",", ":")).encode())
    return _file(body, "application/json", f"{name}.trace.json")


@router.get("/jobs.{form}", response_class=Response)
async def get_jobs_file(
    backend: BackendOf,
    asked: Who,
    form: Form,
    wanted: Annotated[Wanted, Depends(wanted_of)],
    sort: Annotated[str, Query(max_length=20)] = "-t1",
) -> Response:
    """Answer the jobs of a list, at most 100,000."""
    order, most = sorted_by(sort), backend.settings.limits.export_rows
    body = await backend.desk.ask(None, lambda store: table_file(flat(all_jobs(store, wanted, order, most)), form))
    return _file(body, KINDS[form], f"jobs.{form}")


@router.get("/fleet.{form}", response_class=Response)
async def get_fleet_file(
    backend: BackendOf, asked: Who, form: Form, span: SpanOf, scope: ScopeOf, by: By = "team"
) -> Response:
    """Answer the groups of the fleet, a row each."""

    def rows(store: Store, owners: Owners) -> bytes:
        return table_file(flat(fleet(store, owners, span, scope, by).groups), form)

    return _file(await backend.owned(None, rows), KINDS[form], f"fleet-by-{by}.{form}")


@router.get("/stages.{form}", response_class=Response)
async def get_stages_file(backend: BackendOf, asked: Who, form: Form, span: SpanOf, scope: ScopeOf) -> Response:
    """Answer what each stage cost, a row each."""

    def rows(store: Store, owners: Owners) -> bytes:
        return table_file(flat(fleet(store, owners, span, scope, "team").stages), form)

    return _file(await backend.owned(None, rows), KINDS[form], f"stages.{form}")


@router.get("/series.{form}", response_class=Response)
async def get_series_file(
    backend: BackendOf,
    asked: Who,
    form: Form,
    span: SpanOf,
    scope: ScopeOf,
    by: By | None = None,
    step: Literal["auto", "hour", "day", "week"] = "auto",
) -> Response:
    """Answer figures over time, a row for each point."""
    length = _STEPS[step]
    too_fine(span.end - span.start, length)

    def rows(store: Store, owners: Owners) -> bytes:
        return table_file(flat(series(store, owners, span, scope, by, length).points), form)

    return _file(await backend.owned(None, rows), KINDS[form], f"series.{form}")


@metrics.get("/metrics", response_class=Response)
async def get_metrics(backend: BackendOf, asked: Who) -> Response:
    """Answer figures of the fleet for Prometheus."""
    now = time.time_ns() // 1_000
    span = Span.around(now - DAY_US, now)

    def question(store: Store, owners: Owners) -> bytes:
        return gauges(fleet(store, owners, span, Scope(), "team"), count_firing(store))

    owners = await backend.owners()
    body = await backend.desk.ask("metrics", lambda store: question(store, owners), keep_s=_METRICS_S)
    return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")


def _file(body: bytes, kind: str, name: str) -> Response:
    # A name is what somebody called a job: in a header only harmless characters of it stand as they are.
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:150]
    where = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name[:300], safe='')}"
    if not body:
        raise HTTPException(404, "there is nothing to write")
    return Response(body, media_type=kind, headers={"content-disposition": where})
