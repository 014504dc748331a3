"""The fleet, its teams and owners, and comparisons."""

from functools import partial
from typing import Annotated, Final, Literal

from fastapi import APIRouter, HTTPException, Query

from ettwatch_monitor.api.backend import BackendOf, ScopeOf, SpanOf, Who, name_of
from ettwatch_monitor.api.shapes import Compare, Fleet, OwnerView, Series, TeamView
from ettwatch_monitor.queries import (
    DAY_US,
    HOUR_US,
    NOBODY,
    WEEK_US,
    CompareError,
    compare,
    fleet,
    owner_view,
    series,
    team_view,
)

__all__ = ["router", "too_fine"]

router = APIRouter(tags=["fleet"])

By = Literal["team", "model", "cluster", "owner"]
Kind = Literal["job", "team", "model", "cluster", "week", "version"]
_STEPS: Final = {"hour": HOUR_US, "day": DAY_US, "week": WEEK_US, "auto": None}
_MOST_POINTS: Final = 2_000
_Side = Annotated[str, Query(min_length=1, max_length=512)]


def too_fine(length_us: int, step_us: int | None) -> None:
    """Answer 422 where a series would have too many points."""
    if step_us is not None and length_us // step_us > _MOST_POINTS:
        raise HTTPException(422, f"more than {_MOST_POINTS} points; ask for a longer step or less time")


@router.get("/fleet")
async def get_fleet(backend: BackendOf, asked: Who, span: SpanOf, scope: ScopeOf, by: By = "team") -> Fleet:
    """Answer the whole fleet, or what of it is in a team, model and cluster, in a window."""
    return await backend.owned(("fleet", span, scope, by), lambda store, owners: fleet(store, owners, span, scope, by))


@router.get("/fleet/series")
async def get_series(
    backend: BackendOf,
    asked: Who,
    span: SpanOf,
    scope: ScopeOf,
    by: By | None = None,
    step: Literal["auto", "hour", "day", "week"] = "auto",
) -> Series:
    """Answer figures over time: all together, or of the 20 largest by themselves."""
    length = _STEPS[step]
    too_fine(span.end - span.start, length)
    return await backend.owned(
        ("series", span, scope, by, step), lambda store, owners: series(store, owners, span, scope, by, length)
    )


@router.get("/teams/{team}")
async def get_team(backend: BackendOf, asked: Who, span: SpanOf, team: str) -> TeamView:
    """Answer one team; `-` is the jobs that name none."""
    name = name_of(team)
    found = await backend.owned(
        ("team", span, name),
        lambda store, owners: team_view(store, owners, span, "" if name == NOBODY else name),
    )
    if found is None:
        raise HTTPException(404, "there is no job of this team")
    return found


@router.get("/owners/{team}")
async def get_owner(backend: BackendOf, asked: Who, span: SpanOf, team: str) -> OwnerView:
    """Answer what the stages of an owner cost; `-` is those that nobody owns."""
    name = name_of(team)
    found = await backend.owned(("owner", span, name), lambda store, owners: owner_view(store, owners, span, name))
    if found is None:
        raise HTTPException(404, "the ownership file names no such team")
    return found


@router.get("/compare")
async def get_compare(
    backend: BackendOf,
    asked: Who,
    span: SpanOf,
    kind: Kind,
    a: _Side,
    b: _Side,
    label: Annotated[str, Query(min_length=1, max_length=512)] = "version",
) -> Compare:
    """Answer two jobs, models, teams, clusters, weeks or code versions beside each other."""
    question = partial(compare, kind=kind, a=a, b=b, span=span, label=label)
    try:
        found = await backend.desk.ask(("compare", kind, a, b, span, label), question)
    except CompareError as error:
        raise HTTPException(422, str(error)) from None
    if isinstance(found, str):
        raise HTTPException(404, f"of the {kind} {found[:80]!r} there is nothing to compare in this time")
    return found
