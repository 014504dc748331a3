"""Advice and what-if as values for JSON."""

from collections.abc import Sequence

from ettwatch_monitor.advice.advise import Advice, Entry
from ettwatch_monitor.advice.change import Change
from ettwatch_monitor.advice.figures import Figures
from ettwatch_monitor.advice.replays import Replays
from ettwatch_monitor.advice.words import described


def plain_figures(figures: Figures) -> dict[str, object]:
    """Return figures as plain values."""
    return {
        name: None if value is None else value if isinstance(value, dict) else round(value, 6)
        for name, value in figures._asdict().items()
    }


def plain_entry(entry: Entry) -> dict[str, object]:
    """Return one entry as plain values."""
    what_if: dict[str, object] = {"changes": [{"remedy": entry.remedy.name}]}
    if entry.team is not None:
        what_if = {"changes": [{"remedy": entry.remedy.name, "team": entry.team}]}
    return {
        "remedy": entry.remedy.name,
        "title": entry.remedy.title,
        "team": entry.team,
        "owner": entry.owner,
        "contact": entry.contact,
        "stage": entry.remedy.stage,
        "gpu_h_week": round(entry.gpu_h_week, 3),
        "held_gpu_h_week": round(entry.held_gpu_h_week, 3),
        "jobs": entry.jobs,
        "times": entry.times,
        "confidence": entry.confidence,
        "error_pct": entry.error_pct,
        "why": entry.why,
        "arithmetic": list(entry.arithmetic),
        "assumptions": list(entry.remedy.assumes),
        "before": plain_figures(entry.before),
        "after": plain_figures(entry.after),
        "what_if": what_if,
    }


def plain_advice(advice: Advice) -> dict[str, object]:
    """Return advice as plain values."""
    return {
        "weeks": advice.weeks,
        "base": plain_figures(advice.base),
        "all": plain_figures(advice.together),
        "replay_error_pct": round(advice.error_pct, 3),
        "advice": [plain_entry(entry) for entry in advice.entries],
    }


def plain_what_if(replays: Replays, changes: Sequence[Change], weeks: float) -> dict[str, object]:
    """Lay a fleet out under changes, and return what comes of it as plain values."""
    outcome = replays.under(changes)
    before, after = outcome.figures()
    saved = outcome.by_team()
    touched = len(outcome.touched())
    notes = ["a failure comes at the same age of its attempt; the same work is done; other waits stay as long"]
    if not touched:
        notes.append("it makes no difference to any job that was looked at")
    if replays.fixed:
        notes.append(f"{len(replays.fixed):,} jobs cannot be laid out anew and stay as they are")
    return {
        "weeks": weeks,
        "changes": [described(change) for change in changes],
        "before": plain_figures(before),
        "after": plain_figures(after),
        "saved_gpu_h_week": round(sum(s.gpu_h for s in saved.values()) / weeks, 3),
        "saved_held_gpu_h_week": round(sum(s.held_gpu_h for s in saved.values()) / weeks, 3),
        "by_team": {team: round(s.gpu_h / weeks, 3) for team, s in sorted(saved.items())},
        "jobs_touched": touched,
        "replay_error_pct": round(replays.error_pct(), 3),
        "notes": notes,
    }
