"""Two jobs, models, teams, clusters, weeks or code versions beside each other."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final, cast

from ettwatch_clickhouse import Store
from ettwatch_monitor.api.shapes import Compare, Difference, Side
from ettwatch_monitor.queries.figures import Sums, sums
from ettwatch_monitor.queries.fleet import window_of
from ettwatch_monitor.queries.jobs import Wanted, count_jobs
from ettwatch_monitor.queries.rows import by_component, hours, named, per_cent, seconds
from ettwatch_monitor.queries.scope import DIMENSIONS, Scope
from ettwatch_monitor.queries.span import WEEK_US, Span

__all__ = ["KINDS", "CompareError", "compare"]

KINDS: Final = ("job", *DIMENSIONS, "week", "version")
_WEEK: Final = re.compile(r"(\d{4})-W(\d{2})")


class CompareError(ValueError):
    """A side is malformed. One line that says why."""


def compare(store: Store, kind: str, a: str, b: str, span: Span, label: str) -> Compare | str:
    """Return both sides and what differs; the name of a side where there is nothing to say of it.

    Args:
        store: The database.
        kind: One of KINDS.
        a: A job, a value of the dimension, a week such as 2026-W40, or a value of the label.
        b: The other.
        span: The time, for dimensions.
        label: Of versions: the label whose values they are.

    Raises:
        CompareError: A week is malformed.
        StoreError: It cannot be read.
    """
    sides = []
    for key in (a, b):
        if kind == "job":
            side = _of_jobs(store, key, "job = {key:String}", {"key": key})
        elif kind == "version":
            where = "mapContains(labels, {label:String}) AND labels[{label:String}] = {key:String}"
            side = _of_jobs(store, key, where, {"key": key, "label": label})
        elif kind == "week":
            side = _of_rollups(store, key, _week(key), Scope())
        else:
            side = _of_rollups(store, key, span, Scope(**{kind: key}))
        if side is None:
            return key
        sides.append(side)
    return Compare(
        kind=kind,
        label=label if kind == "version" else None,
        window=window_of(span) if kind in DIMENSIONS else None,
        a=sides[0],
        b=sides[1],
        differences=_differences(sides[0], sides[1]),
    )


def _week(text: str) -> Span:
    found = _WEEK.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        days = date.fromisocalendar(int(found[1]), int(found[2]), 1).toordinal() - date(1970, 1, 1).toordinal()
        return Span(days * 86_400_000_000, days * 86_400_000_000 + WEEK_US)
    except ValueError:
        raise CompareError("a week is written as 2026-W40") from None


def _of_rollups(store: Store, key: str, span: Span, scope: Scope) -> Side | None:
    total, _ = sums(store, span, scope)
    if total is None:
        return None
    jobs = sum(sum(told.values()) for told in count_jobs(store, Wanted(scope, span)).values())
    return _side(key, total, jobs)


def _side(key: str, told: Sums, jobs: int) -> Side:
    figures = told.figures
    return Side(
        key=key,
        jobs=jobs,
        ett_pct=figures.ett_pct,
        total_gpu_h=figures.total_gpu_h,
        lost_gpu_h=figures.lost_gpu_h,
        tts_s=figures.tts_p50_s,
        ttr_s=figures.ttr_p50_s,
        nof=figures.nof,
        nof_per_1000_gpu_h=figures.nof_per_1000_gpu_h,
        components=told.components,
        stages={stage: hours(us) for stage, us in told.stages_gpu_us.items()},
    )


def _of_jobs(store: Store, key: str, where: str, params: Mapping[str, object]) -> Side | None:
    """Whole jobs, whenever they were: their figures come from the jobs, their GPU time from the segments."""
    answer = store.query(
        "SELECT count() AS jobs, quantileExactInclusiveOrNull(0.5)(tts_us) AS tts, "
        f"quantileExactInclusiveOrNullArray(0.5)(ttr_us) AS ttr, sum(nof) AS nof FROM jobs WHERE {where}",
        params,
    )
    told: dict[str, Any] = named(answer.columns, answer.rows[0])
    if not told["jobs"]:
        return None
    rows = store.query(
        f"SELECT stage, sum(gpu_us) FROM segments WHERE job IN (SELECT job FROM jobs WHERE {where}) GROUP BY stage",
        params,
    ).rows
    stages = {str(stage): cast(int, us) for stage, us in rows if us}
    total, effective = sum(stages.values()), stages.get("effective_training", 0)
    waited = sum(us for stage, us in stages.items() if stage.partition(".")[0] == "scheduling")
    return Side(
        key=key,
        jobs=told["jobs"],
        ett_pct=per_cent(effective, total),
        total_gpu_h=hours(total),
        lost_gpu_h=hours(total - effective),
        tts_s=seconds(told["tts"]),
        ttr_s=seconds(told["ttr"]),
        nof=told["nof"],
        nof_per_1000_gpu_h=1_000 * told["nof"] / hours(total - waited) if total > waited else None,
        components={name: hours(us) for name, us in by_component(stages).items()},
        stages={stage: hours(us) for stage, us in stages.items()},
    )


def _differences(a: Side, b: Side) -> list[Difference]:
    found = []
    for stage in {*a.stages, *b.stages} - {"effective_training"}:
        of_a, of_b = a.stages.get(stage, 0.0), b.stages.get(stage, 0.0)
        a_pct, b_pct = per_cent(of_a, a.total_gpu_h) or 0.0, per_cent(of_b, b.total_gpu_h) or 0.0
        found.append(
            Difference(stage=stage, a_pct=a_pct, b_pct=b_pct, delta_pct=b_pct - a_pct, a_gpu_h=of_a, b_gpu_h=of_b)
        )
    return sorted(found, key=lambda one: (-abs(one.delta_pct), one.stage))
