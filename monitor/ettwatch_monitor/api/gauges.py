"""Fleet figures for Prometheus, with labels whose number is bounded: the largest teams, and the components."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from ettwatch_monitor.api.shapes import Figures, Fleet

__all__ = ["MOST_TEAMS", "gauges"]

MOST_TEAMS: Final = 50
"""Teams that have figures of their own; the others are told together as `(others)`."""
_OTHERS: Final = "(others)"
_NONE: Final = "(none)"


def gauges(fleet: Fleet, firing: int) -> bytes:
    """Return the text that Prometheus reads, of a fleet by team in the last 24 hours."""
    registry = CollectorRegistry()
    total = fleet.total
    _one(registry, "ett_ratio", "Effective share of GPU time, the last 24 hours", _ratio(total))
    _one(registry, "gpu_hours", "GPU-hours of jobs, the last 24 hours", total.total_gpu_h)
    _one(registry, "lost_gpu_hours", "GPU-hours that consumed no new data, the last 24 hours", total.lost_gpu_h)
    _one(registry, "unsaved_gpu_hours", "GPU-hours that failures discarded, the last 24 hours", total.unsaved_gpu_h)
    _one(registry, "failures", "Attempts that failed or were preempted, the last 24 hours", total.nof)
    _one(registry, "alerts_firing", "Alerts that fire", firing)
    starts = Gauge("ettwatch_fleet_start_seconds", "Time to start, the last 24 hours", ["quantile"], registry=registry)
    again = Gauge(
        "ettwatch_fleet_recovery_seconds", "Time to recover, the last 24 hours", ["quantile"], registry=registry
    )
    for gauge, values in (
        (starts, (total.tts_p50_s, total.tts_p90_s, total.tts_p99_s)),
        (again, (total.ttr_p50_s, total.ttr_p90_s, total.ttr_p99_s)),
    ):
        for quantile, value in zip(("0.5", "0.9", "0.99"), values, strict=True):
            if value is not None:
                gauge.labels(quantile).set(value)
    _labelled(registry, "component_gpu_hours", "GPU-hours, the last 24 hours", "component", fleet.components.items())
    _labelled(registry, "jobs", "Jobs that had time in the last 24 hours", "status", fleet.statuses.items())
    largest = sorted(fleet.groups, key=lambda group: -(group.figures.total_gpu_h if group.figures else 0))
    teams = [(group.key or _NONE, group.lost_gpu_h) for group in largest[:MOST_TEAMS]]
    if len(largest) > MOST_TEAMS:
        teams.append((_OTHERS, sum(group.lost_gpu_h for group in largest[MOST_TEAMS:])))
    _labelled(registry, "team_lost_gpu_hours", "GPU-hours that consumed no new data, the last 24 hours", "team", teams)
    return bytes(generate_latest(registry))


def _ratio(total: Figures) -> float | None:
    return None if total.ett_pct is None else total.ett_pct / 100


def _one(registry: CollectorRegistry, name: str, help_text: str, value: float | None) -> None:
    if value is not None:
        Gauge(f"ettwatch_fleet_{name}", help_text, registry=registry).set(value)


def _labelled(
    registry: CollectorRegistry, name: str, help_text: str, label: str, values: Iterable[tuple[str, float]]
) -> None:
    gauge = Gauge(f"ettwatch_fleet_{name}", help_text, [label], registry=registry)
    for key, value in values:
        gauge.labels(key).set(value)
