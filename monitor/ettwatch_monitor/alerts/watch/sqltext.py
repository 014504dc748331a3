"""Queries that show what an alert says, ready to be run on the views."""

from datetime import UTC, datetime, timedelta
from typing import Final

from ettwatch_monitor.alerts.detect import StreamKey

__all__ = ["queries", "quoted"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_JOINED: Final = "attempts AS a ANY LEFT JOIN (SELECT job, team, model, cluster FROM jobs) AS j USING (job)"
_DAY_US: Final = 86_400_000_000


def quoted(text: str) -> str:
    """Return a text as a literal of ClickHouse's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def queries(key: StreamKey, onset: int, now: int, days: int) -> tuple[tuple[str, str], ...]:
    """Return titles and queries: the figure by day, by model before and after, and the worst cases since.

    Args:
        key: What the alert is of.
        onset: Since when it is worse, in microseconds.
        now: Until when.
        days: How long before the onset to look.
    """
    since, from_, until = _time(onset), _time(onset - days * _DAY_US), _time(now)
    where = _scope(key)
    at, value, extra = _measure(key)
    inside = f"{at} BETWEEN {from_} AND {until}{extra}{where}"
    if key.metric in ("nof", "outage"):
        by_day = (
            "SELECT toDate(a.end) AS day, countIf(a.outcome IN ('failed', 'preempted')) AS failures, "
            "round(sum(a.duration_s * a.gpus) / 3600) AS gpu_hours, round(1000 * failures / gpu_hours, 2) AS per_1000 "
            f"FROM {_JOINED} WHERE {inside} GROUP BY day ORDER BY day"
        )
        by_cause = (
            f"SELECT ifNull(a.cause, '') AS cause, countIf(a.end < {since}) AS before, "
            f"countIf(a.end >= {since}) AS after FROM {_JOINED} "
            f"WHERE a.outcome IN ('failed', 'preempted') AND {inside} GROUP BY cause ORDER BY after DESC"
        )
        worst = (
            f"SELECT a.job, a.attempt, a.end, a.cause, a.message, a.gpus FROM {_JOINED} WHERE a.end >= {since} "
            f"AND a.outcome IN ('failed', 'preempted'){where} ORDER BY a.end DESC LIMIT 50"
        )
        return (("failures by day", by_day), ("causes before and after", by_cause), ("failures since", worst))
    by_day = (
        f"SELECT toDate({at}) AS day, count() AS number, round(quantileExact(0.5)({value}), 3) AS median, "
        f"round(quantileExact(0.9)({value}), 3) AS p90 FROM {_JOINED} WHERE {inside} GROUP BY day ORDER BY day"
    )
    by_model = (
        f"SELECT j.model, countIf({at} < {since}) AS before, round(quantileExactIf(0.5)({value}, {at} < {since}), 3) "
        f"AS median_before, countIf({at} >= {since}) AS after, "
        f"round(quantileExactIf(0.5)({value}, {at} >= {since}), 3) AS median_after "
        f"FROM {_JOINED} WHERE {inside} GROUP BY j.model ORDER BY after DESC"
    )
    by_stage = (
        f"SELECT stage, round(sumIf(seconds, late) / uniqExactIf((job, attempt), late), 1) AS after_s, "
        f"round(sumIf(seconds, NOT late) / uniqExactIf((job, attempt), NOT late), 1) AS before_s FROM "
        f"(SELECT a.job AS job, a.attempt AS attempt, {at} >= {since} AS late, mapKeys(a.stages) AS stage, "
        f"mapValues(a.stages) AS seconds FROM {_JOINED} WHERE {inside}) "
        "ARRAY JOIN stage, seconds GROUP BY stage ORDER BY after_s DESC"
    )
    order = "ASC" if key.metric == "ett" else "DESC"
    worst = (
        f"SELECT a.job, a.attempt, {at} AS at, round({value}, 3) AS value, j.model, a.gpus FROM {_JOINED} "
        f"WHERE {at} >= {since} AND {inside} ORDER BY value {order} LIMIT 20"
    )
    return (
        ("by day", by_day),
        ("by model before and after", by_model),
        ("by stage, of whole attempts", by_stage),
        ("the worst since", worst),
    )


def _measure(key: StreamKey) -> tuple[str, str, str]:
    """Return the time of a sample, its value, and what else has to hold."""
    if key.metric in ("tts", "ttr"):
        return "a.first_batch", f"a.{key.metric}_s", f" AND a.{key.metric}_s IS NOT NULL"
    if key.metric == "compile":
        return "a.first_batch", "a.components['pt2_compilation']", " AND a.first_batch IS NOT NULL"
    total = "arraySum(mapValues(a.stages))"
    if key.metric == "ett":
        return "a.end", f"a.effective_s / {total}", f" AND NOT a.open AND {total} > 0"
    if key.metric in ("nof", "outage"):
        return "a.end", "1", ""
    component = key.metric.partition(".")[2]
    return "a.end", f"a.components[{quoted(component)}] / {total}", f" AND NOT a.open AND {total} > 0"


def _scope(key: StreamKey) -> str:
    labels = key.labels
    return "".join(f" AND j.{name} = {quoted(labels[name])}" for name in ("team", "model", "cluster") if name in labels)


def _time(ts: int) -> str:
    text = (_EPOCH + timedelta(microseconds=ts)).strftime("%Y-%m-%d %H:%M:%S")
    return f"toDateTime64('{text}', 6, 'UTC')"
