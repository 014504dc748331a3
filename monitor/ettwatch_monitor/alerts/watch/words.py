"""An episode in words: the alert that people read."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from ettwatch_monitor.alerts.alert import Alert, Severity
from ettwatch_monitor.alerts.detect import METRICS, Effect, Incident, Metric, StreamKey
from ettwatch_monitor.alerts.watch.explain import Part
from ettwatch_monitor.alerts.watch.sqltext import queries

__all__ = ["alert_of", "amount", "instant"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ENDINGS: Final[Mapping[str, str]] = {
    "recovered": "the usual level is back",
    "accepted": "this level has lasted so long that it counts as usual from now on",
    "quiet": "no samples come any more",
    "off": "this is not watched any more",
}
_CRITICAL: Final = 1.5
"""From this ratio on a regression is critical; an outage always is."""


def alert_of(
    incident: Incident, now: int, parts: Sequence[Part] = (), contact: str | None = None, days: int = 56
) -> Alert:
    """Return an episode as an alert.

    Args:
        incident: The episode.
        now: When this state was found, in microseconds.
        parts: What explains it.
        contact: Where its owner is found.
        days: How long the baseline is.
    """
    key = incident.key
    labels = {"alertname": "EttwatchRegression", "metric": key.metric, "sort": incident.sort, **_labels(key)}
    lines = [_moved(incident), _since(incident), *_explained(incident, parts), *_together(incident)]
    if incident.ending is not None:
        lines.append(f"Over since {instant(incident.ended or now)}: {_ENDINGS[incident.ending]}.")
    if contact:
        lines.append(f"Contact: {contact}")
    until = incident.ended if incident.ended is not None else incident.found
    return Alert(
        key=str(key),
        status="firing" if incident.open else "resolved",
        starts_at=incident.onset,
        ends_at=incident.ended,
        updated_at=now,
        severity=_severity(incident),
        labels=labels,
        title=_title(incident),
        body="\n".join(line for line in lines if line),
        facts=_facts(incident, parts),
        sql=queries(key, incident.onset, until, days),
    )


def instant(ts: int) -> str:
    """Return a time for people: to the minute, UTC."""
    return (_EPOCH + timedelta(microseconds=ts)).strftime("%Y-%m-%d %H:%M UTC")


def amount(metric: Metric, value: float) -> str:
    """Return a value of a metric with its unit."""
    if metric.kind == "share":
        return f"{100 * value:.1f} %"
    if metric.kind == "rate":
        return f"{value:.2f} per 1000 GPU-hours"
    return f"{value:,.0f} s" if value >= 10 else f"{value:.1f} s"


def _labels(key: StreamKey) -> dict[str, str]:
    return key.labels


def _of(key: StreamKey) -> str:
    labels = key.labels
    if "owner" in labels:
        return f"of {labels['owner']}"
    if labels.get("scope") == "fleet":
        return "of the whole fleet"
    return "of " + ", ".join(f"{name} {value}" for name, value in labels.items())


def _title(incident: Incident) -> str:
    if incident.note:
        return incident.note
    metric, effect = METRICS[incident.key.metric], incident.effect
    many = f", in {len(incident.also)} scopes at once" if incident.sort == "fleet" else ""
    if effect is None:
        return f"{metric.title} {_of(incident.key)} got worse{many}"
    if metric.kind == "share":
        how = f"{effect.points:+.1f} points, to {amount(metric, effect.high[1])}"
    elif metric.kind == "rate":
        how = f"x{effect.ratio:.1f}, to {amount(metric, effect.high[1])}"
    else:
        how = f"{100 * (effect.ratio - 1):+.0f} %, to {amount(metric, effect.high[1])}"
    return f"{metric.title} {_of(incident.key)}: {how}{many}"


def _moved(incident: Incident) -> str:
    effect, key = incident.effect, incident.key
    if effect is None:
        return incident.note
    metric = METRICS[key.metric]
    if metric.kind == "rate":
        return (
            f"From {amount(metric, effect.low[1])} to {amount(metric, effect.high[1])}: x{effect.ratio:.2f} (95 %: "
            f"{effect.ratio_from:.2f} to {effect.ratio_to:.2f}), by {effect.before} failures before and {effect.after} "
            f"of {effect.jobs_after} jobs since. {_sure(incident, effect)}"
        )
    low, high = (
        f"{amount(metric, q[1])} (10 %: {amount(metric, q[0])}, 90 %: {amount(metric, q[2])})"
        for q in (effect.low, effect.high)
    )
    shift = (
        f"{effect.points:+.1f} percentage points"
        if metric.kind == "share"
        else f"x{effect.ratio:.2f} among like jobs (95 %: {effect.ratio_from:.2f} to {effect.ratio_to:.2f})"
    )
    return (
        f"Median from {low} to {high}: {shift}, by {effect.before} samples before and {effect.after} of "
        f"{effect.jobs_after} jobs since. {_sure(incident, effect)}"
    )


def _sure(incident: Incident, effect: Effect) -> str:
    return f"By chance, at any time: p <= {incident.p:.1g} (two samples: p = {effect.p_two_sample:.1g})."


def _since(incident: Incident) -> str:
    return (
        f"Since about {instant(incident.onset)} (between {instant(incident.earliest)} and "
        f"{instant(incident.latest)}); found {instant(incident.found)}."
    )


def _explained(incident: Incident, parts: Sequence[Part]) -> list[str]:
    if incident.effect is None:
        return []
    if not parts:
        return ["No stage, model, cluster or host stands out: all moved alike."]
    return ["What explains most of it:", *(f"- {_part(METRICS[incident.key.metric], part)}" for part in parts)]


def _part(metric: Metric, part: Part) -> str:
    share = f"{100 * min(part.share, 9.99):.0f} %"
    if part.kind == "stage" and part.before is not None and part.after is not None:
        unit = amount(metric, part.before), amount(metric, part.after)
        return f"stage {part.name}: {share} of it, on average from {unit[0]} to {unit[1]}"
    if part.kind == "cache" and part.before is not None and part.after is not None:
        return f"{part.name}: {share} of it, from {100 * part.before:.0f} % to {100 * part.after:.0f} % of the starts"
    if part.before is not None and part.after is not None:
        return f"{part.kind} {part.name}: {share} of it, {part.after:.0f} where {part.before:.1f} were to be expected"
    return f"{part.kind} {part.name}: {share} of it, by {part.number} samples"


def _together(incident: Incident) -> list[str]:
    if not incident.also:
        return []
    return ["Moved with it: " + ", ".join(f"{key.metric} {_of(key)}" for key in incident.also) + "."]


def _severity(incident: Incident) -> Severity:
    if incident.sort == "outage":
        return "critical"
    effect = incident.effect
    if effect is None:
        return "warning"
    metric = METRICS[incident.key.metric]
    large = effect.ratio if metric.worse > 0 else 1 / max(effect.ratio, 1e-9)
    if metric.kind == "share":
        return "critical" if abs(effect.points) >= 20 else "warning"
    return "critical" if large >= (2 * _CRITICAL if metric.kind == "rate" else _CRITICAL) else "warning"


def _facts(incident: Incident, parts: Sequence[Part]) -> dict[str, float | str]:
    facts: dict[str, float | str] = {
        "onset": instant(incident.onset),
        "onset_earliest": instant(incident.earliest),
        "onset_latest": instant(incident.latest),
        "p": incident.p,
    }
    effect = incident.effect
    if effect is not None:
        for side, values in (("before", effect.low), ("after", effect.high)):
            facts |= {f"{name}_{side}": value for name, value in zip(("p10", "p50", "p90"), values, strict=True)}
        facts |= {
            "ratio": effect.ratio,
            "ratio_from": effect.ratio_from,
            "ratio_to": effect.ratio_to,
            "points": effect.points,
            "samples_before": float(effect.before),
            "samples_after": float(effect.after),
            "jobs_after": float(effect.jobs_after),
            "p_two_sample": effect.p_two_sample,
        }
    for number, part in enumerate(parts, 1):
        facts[f"explained_{number}"] = f"{part.kind} {part.name}"
        facts[f"explained_{number}_share"] = part.share
    return facts
