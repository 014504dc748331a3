"""Jobs: a list, one of them, its timeline."""

from typing import Annotated, Final

from fastapi import APIRouter, HTTPException, Query

from ettwatch_monitor.api.backend import Backend, BackendOf, ScopeOf, SpanOf, Who, name_of
from ettwatch_monitor.api.shapes import JobDetail, JobPage, Timeline, UsualStart
from ettwatch_monitor.queries import (
    LIVE,
    SORTS,
    STATUSES,
    Span,
    SpanError,
    Wanted,
    job_detail,
    list_jobs,
    near_names,
    timeline,
    usual_start,
)

__all__ = ["missing", "router", "sorted_by", "wanted_of"]

router = APIRouter(tags=["jobs"])

_LATEST: Final = 4_000_000_000_000_000
_USUAL_S: Final = 60.0
"""What is usual changes slowly: its answer is kept for so long."""
_From = Annotated[int | None, Query(alias="from", ge=0, le=_LATEST)]
_To = Annotated[int | None, Query(alias="to", ge=0, le=_LATEST)]


def wanted_of(
    scope: ScopeOf,
    start: _From = None,
    end: _To = None,
    status: Annotated[str, Query(max_length=200, description="words with commas between; `live`: not over")] = "",
    q: Annotated[str, Query(max_length=200, description="what the name holds")] = "",
) -> Wanted:
    """Return which jobs are asked for: without a time, all."""
    words = [word for part in status.split(",") if (word := part.strip())]
    chosen = tuple(dict.fromkeys(one for word in words for one in (LIVE if word == "live" else (word,))))
    unknown = [word for word in chosen if word not in STATUSES]
    if unknown:
        raise HTTPException(422, f"status: write of {', '.join(STATUSES)}, or live")
    try:
        span = None if start is None and end is None else Span.around(start or 0, _LATEST if end is None else end)
    except SpanError:
        # A list is cheap whatever its time: only an empty one makes no sense.
        if (start or 0) >= (_LATEST if end is None else end):
            raise HTTPException(422, "the time must end after it begins") from None
        span = None
    return Wanted(scope, span, chosen, q)


def sorted_by(sort: str) -> str:
    """Return by what a list is sorted. Answers 422 where that is not known."""
    if sort.removeprefix("-") not in SORTS:
        raise HTTPException(422, f"sort: write one of {', '.join(SORTS)}, perhaps with a minus before it")
    return sort


async def missing(backend: Backend, name: str) -> HTTPException:
    """Return the answer for a job that is not there."""
    near = await backend.desk.ask(("near", name), lambda store: near_names(store, name))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return HTTPException(404, f"there is no such job{hint}")


@router.get("/jobs")
async def get_jobs(
    backend: BackendOf,
    asked: Who,
    scope: ScopeOf,
    start: _From = None,
    end: _To = None,
    status: Annotated[str, Query(max_length=200, description="words with commas between; `live`: not over")] = "",
    q: Annotated[str, Query(max_length=200, description="what the name holds, whatever its case")] = "",
    sort: Annotated[str, Query(max_length=20)] = "-t1",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
    size: Annotated[int, Query(ge=1, le=500)] = 50,
) -> JobPage:
    """Answer a page of jobs: those that had time between `from` and `to`, or all."""
    wanted, order = wanted_of(scope, start, end, status, q), sorted_by(sort)
    return await backend.desk.ask(
        ("jobs", wanted, order, page, size), lambda store: list_jobs(store, wanted, order, page, size)
    )


@router.get("/jobs/{job}/timeline")
async def get_timeline(backend: BackendOf, asked: Who, job: str, start: _From = None, end: _To = None) -> Timeline:
    """Answer what to draw of a job, or of some of its time."""
    name = name_of(job)
    if start is not None and end is not None and start >= end:
        raise HTTPException(422, "the time must end after it begins")
    found = await backend.desk.ask(("timeline", name, start, end), lambda store: timeline(store, name, start, end))
    if found is None:
        raise await missing(backend, name)
    return found


@router.get("/jobs/{job}/usual")
async def get_usual(backend: BackendOf, asked: Who, job: str, span: SpanOf) -> UsualStart:
    """Answer how other jobs of its model started, for comparison; those that began in the window."""
    name = name_of(job)
    found = await backend.desk.ask(("usual", name, span), lambda store: usual_start(store, name, span), keep_s=_USUAL_S)
    if found is None:
        raise await missing(backend, name)
    return found


@router.get("/jobs/{job}")
async def get_job(backend: BackendOf, asked: Who, job: str) -> JobDetail:
    """Answer the numbers of a job."""
    name = name_of(job)
    found = await backend.owned(("job", name), lambda store, owners: job_detail(store, owners, name))
    if found is None:
        raise await missing(backend, name)
    return found
