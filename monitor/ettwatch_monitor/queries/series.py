"""Figures over time: all together, or by team, model, cluster or owner."""

from collections import defaultdict
from collections.abc import Iterable

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.api.shapes import Point, Series
from ettwatch_monitor.queries.figures import sums_over_time
from ettwatch_monitor.queries.fleet import window_of
from ettwatch_monitor.queries.ownership import Loss, losses
from ettwatch_monitor.queries.rows import by_component, hours
from ettwatch_monitor.queries.scope import Scope
from ettwatch_monitor.queries.span import Span

__all__ = ["lost_points", "series"]

_MOST_KEYS = 20


def series(store: Store, owners: Owners, span: Span, scope: Scope, by: str | None, step: int | None = None) -> Series:
    """Return figures over time.

    Args:
        store: The database.
        owners: The rules of ownership.
        span: The time.
        scope: Whose jobs.
        by: A dimension or `owner`: of each of the largest by itself; None for all together.
        step: HOUR_US, DAY_US or WEEK_US; None for what fits the span.

    Raises StoreError.
    """
    step = span.step if step is None else step
    if by == "owner":
        points = lost_points(losses(store, owners, span, scope, step))
    else:
        points = [
            Point(
                at_us=at,
                key=name or None,
                ett_pct=told.figures.ett_pct,
                total_gpu_h=told.figures.total_gpu_h,
                effective_gpu_h=told.figures.effective_gpu_h,
                lost_gpu_h=told.figures.lost_gpu_h,
                waited_gpu_h=told.figures.waited_gpu_h,
                jobs=told.job_times,
                nof=told.figures.nof,
                tts_p50_s=told.figures.tts_p50_s,
                ttr_p50_s=told.figures.ttr_p50_s,
                components=told.components,
            )
            for at, name, told in sums_over_time(store, span, scope, step, by)
        ]
    keys = _largest(points) if by is not None else [None]
    kept = set(keys)
    return Series(
        window=window_of(span),
        step_s=step // 1_000_000,
        by=by,
        keys=keys,
        points=[point for point in points if point.key in kept],
    )


def lost_points(told: Iterable[Loss]) -> list[Point]:
    """Return what each owner's stages cost over time; nobody's have no key."""
    stages: dict[tuple[int, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for loss in told:
        stages[loss.at, loss.owner.team if loss.owner is not None else ""][loss.stage] += loss.gpu_us
    found = []
    for (at, name), of_stage in sorted(stages.items()):
        lost = hours(sum(of_stage.values()))
        found.append(
            Point(
                at_us=at,
                key=name or None,
                ett_pct=None,
                total_gpu_h=lost,
                effective_gpu_h=0,
                lost_gpu_h=lost,
                waited_gpu_h=hours(
                    sum(us for stage, us in of_stage.items() if stage.partition(".")[0] == "scheduling")
                ),
                jobs=0,
                nof=0,
                tts_p50_s=None,
                ttr_p50_s=None,
                components={part: hours(us) for part, us in by_component(of_stage).items()},
            )
        )
    return found


def _largest(points: list[Point]) -> list[str | None]:
    total: dict[str | None, float] = defaultdict(float)
    for point in points:
        total[point.key] += point.total_gpu_h
    return sorted(total, key=lambda key: (-total[key], key or ""))[:_MOST_KEYS]
