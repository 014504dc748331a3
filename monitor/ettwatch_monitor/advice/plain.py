"""Advice and what-if as values for JSON."""

from collections.abc import Sequence

from ettwatch_monitor.advice.change import Change
from ettwatch_monitor.advice.entry import Advice, Entry, Group, Overlap
from ettwatch_monitor.advice.evidence import counted
from ettwatch_monitor.advice.figures import Figures
from ettwatch_monitor.advice.replays import Replays
from ettwatch_monitor.advice.words import described


def plain_figures(figures: Figures) -> dict[str, object]:
    """Return figures as plain values."""
    return {
        name: None if value is None else value if isinstance(value, dict) else round(value, 6)
        for name, value in figures._asdict().items()
    }


def plain_entry(entry: Entry, weeks: float) -> dict[str, object]:
    """Return one entry as plain values."""
    told = entry.sum
    return {
        "remedy": entry.remedy.name,
        "title": entry.title,
        "team": entry.team,
        "owner": entry.owner,
        "contact": entry.contact,
        "stage": entry.remedy.stage,
        "gpu_h": round(told.gpu_h, 6),
        "held_gpu_h": round(entry.held_gpu_h, 6),
        "lost_pct": _rounded(told.lost_pct),
        "gpu_h_week": round(told.gpu_h / weeks, 6),
        "held_gpu_h_week": round(entry.held_gpu_h / weeks, 6),
        "stage_gpu_h": _rounded(entry.stage_gpu_h),
        "jobs": entry.jobs,
        "times": entry.times,
        "confidence": entry.confidence,
        "error_pct": entry.error_pct,
        "why": entry.why,
        "why_confidence": f"Why {entry.confidence} confidence: {entry.why}.",
        "sum": {
            "lost_before_gpu_h": round(told.lost_before, 6),
            "lost_after_gpu_h": round(told.lost_after, 6),
            "less_lost_gpu_h": round(told.less_lost, 6),
            "faster_gpu_h": round(told.faster, 6),
            "gpu_h": round(told.gpu_h, 6),
            "weeks": weeks,
            "partly": told.partly,
            "scale": round(told.scale, 6),
        },
        "arithmetic": list(entry.arithmetic),
        "assumptions": list(entry.remedy.assumes),
        "overlaps": [_overlap(each) for each in entry.overlaps],
        "jobs_named": [{"job": each.job, "gpu_h": round(each.gpu_h, 6), "times": each.times} for each in entry.gainers],
        "hosts": [{"host": each.host, "attempts": each.attempts, "jobs": list(each.jobs)} for each in entry.slow],
        "together": entry.together,
        "before": plain_figures(entry.before),
        "after": plain_figures(entry.after),
        "what_if": {"changes": [{"remedy": entry.remedy.name, "team": entry.team or ""}]},
    }


def _overlap(overlap: Overlap) -> dict[str, object]:
    words = {"contained": "contained in", "contains": "contains", "overlaps": "overlaps with"}[overlap.how]
    return {
        "remedy": overlap.remedy.name,
        "title": overlap.remedy.title,
        "how": overlap.how,
        "gpu_h": round(overlap.gpu_h, 6),
        "text": f"{words}: {overlap.remedy.title}",
    }


def _group(group: Group, advice: Advice) -> dict[str, object]:
    entries = [advice.entries[i] for i in group.entries]
    first = entries[0]
    return {
        "remedy": group.remedy.name,
        "title": first.title if len(entries) == 1 else group.remedy.title,
        "stage": group.remedy.stage,
        "owners": list(dict.fromkeys(each.owner for each in entries if each.owner is not None)),
        "gpu_h": round(group.gpu_h, 6),
        "held_gpu_h": round(group.held_gpu_h, 6),
        "lost_pct": _rounded(group.lost_pct),
        "gpu_h_week": round(group.gpu_h / advice.weeks, 6),
        "held_gpu_h_week": round(group.held_gpu_h / advice.weeks, 6),
        "stage_gpu_h": _rounded(group.stage_gpu_h),
        "jobs": sum(each.jobs for each in entries),
        "times": sum(each.times for each in entries),
        "confidence": first.confidence,
        "overlaps": [_overlap(each) for each in group.overlaps],
        "together": first.together,
        "entries": list(group.entries),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def plain_advice(advice: Advice) -> dict[str, object]:
    """Return advice as plain values."""
    stage = advice.of_stage
    return {
        "weeks": advice.weeks,
        "base": plain_figures(advice.base),
        "all": plain_figures(advice.together),
        "replay_error_pct": round(advice.error_pct, 6),
        "of_stage": None
        if stage is None
        else {"stage": stage.stage, "lost_gpu_h": round(stage.before, 6), "after_gpu_h": round(stage.after, 6)},
        "groups": [_group(group, advice) for group in advice.groups],
        "advice": [plain_entry(entry, advice.weeks) for entry in advice.entries],
    }


def plain_what_if(replays: Replays, changes: Sequence[Change], weeks: float) -> dict[str, object]:
    """Lay a fleet out under changes, and return what comes of it as plain values."""
    outcome = replays.under(changes)
    before, after = outcome.figures()
    saved = outcome.by_team()
    touched = len(outcome.touched())
    notes = [
        "a failure comes at the same age of its attempt; the same work is done; other waits stay as long; a job that "
        "needs longer than it took fails on as often as its kind does"
    ]
    if not touched:
        notes.append("it makes no difference to any job that was looked at")
    if replays.fixed:
        notes.append(f"{counted(len(replays.fixed), 'job')} cannot be laid out anew: nothing changes there")
    return {
        "weeks": weeks,
        "changes": [described(change) for change in changes],
        "before": plain_figures(before),
        "after": plain_figures(after),
        "saved_gpu_h_week": round(sum(s.gpu_h for s in saved.values()) / weeks, 6),
        "saved_held_gpu_h_week": round(sum(s.held_gpu_h for s in saved.values()) / weeks, 6),
        "by_team": {team: round(s.gpu_h / weeks, 6) for team, s in sorted(saved.items())},
        "jobs_touched": touched,
        "replay_error_pct": round(replays.error_pct(), 6),
        "notes": notes,
    }
