"""The fleet in a window: figures, components, stages, and the same by team, model, cluster or owner."""

from collections import defaultdict
from collections.abc import Iterable
from typing import cast

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.api.shapes import Figures, Fleet, Group, TeamView, Window
from ettwatch_monitor.queries.figures import Sums, sums
from ettwatch_monitor.queries.jobs import Wanted, count_jobs, list_jobs
from ettwatch_monitor.queries.ownership import Loss, losses, stage_losses
from ettwatch_monitor.queries.rows import by_component, hours
from ettwatch_monitor.queries.scope import DIMENSIONS, Scope
from ettwatch_monitor.queries.span import Span

__all__ = ["EMPTY", "comparable", "fleet", "groups_of", "made_until", "team_view", "whole_before", "window_of"]

EMPTY = Figures(
    ett_pct=None,
    ett_pct_jobs=None,
    total_gpu_h=0,
    effective_gpu_h=0,
    lost_gpu_h=0,
    waited_gpu_h=0,
    held_gpu_h=0,
    unsaved_gpu_h=0,
    job_h=0,
    jobs=0,
    attempts=0,
    starts=0,
    tts_p50_s=None,
    tts_p90_s=None,
    tts_p99_s=None,
    recoveries=0,
    ttr_p50_s=None,
    ttr_p90_s=None,
    ttr_p99_s=None,
    nof=0,
    nof_infra=0,
    nof_preempted=0,
    nof_per_1000_gpu_h=None,
    mtbf_h=None,
    causes={},
)
"""The figures of nothing."""

_MOST_GROUPS = 500
_COMPARABLE = 0.1
"""With less of the hours of now, what was before is its first or last rest: a difference would be news of nothing."""


def comparable(now: float, before: float) -> bool:
    """Tell whether so many GPU-hours of before are worth a comparison with those of now."""
    return before > 0 and before >= _COMPARABLE * now


def whole_before(store: Store, span: Span) -> Span | None:
    """Return the span before, of equal length; None where there is nothing yet of its first hour. Raises StoreError."""
    earlier = span.before
    if earlier is None:
        return None
    ((number, first),) = store.query(
        "SELECT count(), min(toUnixTimestamp(hour)) FROM rollup_hours WHERE parts > 0"
    ).rows
    return earlier if number and cast(int, first) * 1_000_000 <= earlier.start else None


def window_of(span: Span) -> Window:
    """Return a span as it is answered."""
    return Window(from_us=span.start, to_us=span.end)


def fleet(store: Store, owners: Owners, span: Span, scope: Scope, by: str) -> Fleet:
    """Return the fleet, or what of it is in a scope; `by` is a dimension or `owner`. Raises StoreError."""
    dimension = by if by in DIMENSIONS else None
    total, groups = sums(store, span, scope, dimension)
    before, groups_before = _before(store, total, span, scope, dimension)
    counts = count_jobs(store, Wanted(scope, span), dimension)
    if by == "owner":
        earlier = losses(store, owners, span.before, scope) if before is not None and span.before else []
        parts = _owners(losses(store, owners, span, scope), earlier)
    else:
        parts = groups_of(groups, groups_before, counts)
    statuses = _statuses(counts)
    return Fleet(
        window=window_of(span),
        total=_counted(total, sum(statuses.values())),
        before=before.figures if before is not None else None,
        components=total.components if total is not None else {},
        stages=stage_losses(total.stages_gpu_us, total.stages_us, owners) if total is not None else [],
        by=by,
        groups=parts[:_MOST_GROUPS],
        statuses=statuses,
        as_of_us=made_until(store),
    )


def team_view(store: Store, owners: Owners, span: Span, team: str) -> TeamView | None:
    """Return one team; None if nobody ever heard of it. Raises StoreError."""
    scope = Scope(team=team)
    ((ever,),) = store.query(f"SELECT count() > 0 FROM jobs WHERE {scope.where()}", scope.params()).rows
    if not ever:
        return None
    total, models = sums(store, span, scope, "model")
    _, clusters = sums(store, span, scope, "cluster")
    before, models_before = _before(store, total, span, scope, "model")
    _, clusters_before = _before(store, total, span, scope, "cluster")
    wanted = Wanted(scope, span)
    counts = count_jobs(store, wanted, "model")
    statuses = _statuses(counts)
    return TeamView(
        team=team,
        window=window_of(span),
        total=_counted(total, sum(statuses.values())),
        before=before.figures if before is not None else None,
        components=total.components if total is not None else {},
        stages=stage_losses(total.stages_gpu_us, total.stages_us, owners) if total is not None else [],
        models=groups_of(models, models_before, counts),
        clusters=groups_of(clusters, clusters_before, count_jobs(store, wanted, "cluster")),
        statuses=statuses,
        jobs=list_jobs(store, wanted, "-lost", 1, 20).jobs,
    )


def groups_of(now: dict[str, Sums], before: dict[str, Sums], counts: dict[str, dict[str, int]]) -> list[Group]:
    """Return the groups, the one that lost most first."""
    found = [
        Group(
            key=name or None,
            lost_gpu_h=told.figures.lost_gpu_h,
            before_lost_gpu_h=before[name].figures.lost_gpu_h if name in before else None,
            figures=_counted(told, sum(counts.get(name, {}).values())),
            components=told.components,
        )
        for name, told in now.items()
    ]
    return sorted(found, key=lambda group: (-group.lost_gpu_h, group.key or ""))


def made_until(store: Store) -> int | None:
    """Return the end (µs) of the last hour with anything in it; None where there is nothing. Raises StoreError."""
    ((hour,),) = store.query("SELECT max(toUnixTimestamp(hour)) FROM rollup_hours WHERE parts > 0").rows
    return (cast(int, hour) + 3_600) * 1_000_000 if hour else None


def _before(
    store: Store, now: Sums | None, span: Span, scope: Scope, by: str | None
) -> tuple[Sums | None, dict[str, Sums]]:
    earlier = whole_before(store, span)
    if earlier is None:
        return None, {}
    before, groups = sums(store, earlier, scope, by, stages=False)
    hours_now = now.figures.total_gpu_h if now is not None else 0.0
    if before is None or not comparable(hours_now, before.figures.total_gpu_h):
        return None, {}
    return before, groups


def _counted(told: Sums | None, jobs: int) -> Figures:
    return (told.figures if told is not None else EMPTY).model_copy(update={"jobs": jobs})


def _statuses(counts: dict[str, dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for of_one in counts.values():
        for status, number in of_one.items():
            found[status] += number
    return dict(found)


def _owners(now: Iterable[Loss], before: Iterable[Loss]) -> list[Group]:
    stages: dict[str | None, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    contacts: dict[str | None, str | None] = {}
    for loss in now:
        name = loss.owner.team if loss.owner is not None else None
        stages[name][loss.stage] += loss.gpu_us
        if loss.owner is not None and loss.owner.contact:
            contacts.setdefault(name, loss.owner.contact)
    earlier: dict[str | None, int] = defaultdict(int)
    for loss in before:
        earlier[loss.owner.team if loss.owner is not None else None] += loss.gpu_us
    found = [
        Group(
            key=name,
            lost_gpu_h=hours(sum(told.values())),
            before_lost_gpu_h=hours(earlier[name]) if name in earlier else None,
            figures=None,
            components={part: hours(us) for part, us in by_component(told).items()},
            contact=contacts.get(name),
        )
        for name, told in stages.items()
    ]
    return sorted(found, key=lambda group: (-group.lost_gpu_h, group.key or ""))
