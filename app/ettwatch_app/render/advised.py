"""Advice and what-if as lines of text."""

from collections.abc import Iterator, Mapping
from typing import Any

from ettwatch_app.render.text import clean


def advice_lines(told: Mapping[str, Any], limit: int) -> Iterator[str]:
    """Yield the lines of advice, by remedy; with `limit` entries in all."""
    job = told["asked"]["job"]
    yield f"job {clean(job, 200)}" if job else _sample(told["sample"], told["weeks"])
    yield f"as it is          {_figures(told['base'])}"
    yield f"all shown here    {_figures(told['all'])}"
    stage = told["of_stage"]
    if stage is not None:
        yield f"{stage['stage']}: {stage['lost_gpu_h']:,.1f} GPU-h as it is, {stage['after_gpu_h']:,.1f} with all shown"
    yield ""
    if not told["advice"]:
        yield "no remedy would give anything back"
    left = limit
    for number, group in enumerate(told["groups"], 1):
        if left <= 0:
            break
        entries = [told["advice"][i] for i in group["entries"][:left]]
        left -= len(entries)
        yield f"{number}. {group['title']}: {_gain(group, told)}"
        yield f"   {group['remedy']}{_part(group)}"
        for overlap in group["overlaps"]:
            yield f"   {overlap['text']} ({overlap['gpu_h']:,.1f} GPU-h)"
        for entry in entries:
            yield from _entry(entry, group, told)
        yield f"   assumed: {'; '.join(entries[0]['assumptions'])}"
    rest = max(0, len(told["advice"]) - limit)
    if rest > 0:
        yield f"{rest:,} more; --limit shows them"


def _gain(part: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    share = "" if part["lost_pct"] is None else f" ({part['lost_pct']:.0f} % of what was lost)"
    stage = "" if part["stage_gpu_h"] is None else f", {part['stage_gpu_h']:,.1f} of it in {told['asked']['stage']}"
    week = "" if told["asked"]["job"] else f", {part['gpu_h_week']:,.1f} a week"
    return f"{part['gpu_h']:,.1f} GPU-h{share}{stage}{week}"


def _part(group: Mapping[str, Any]) -> str:
    return "" if group["together"] else "; not counted in all: part of another remedy, or too uncertain"


def _entry(entry: Mapping[str, Any], group: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[str]:
    team, owner = clean(entry["team"] or "(no team)", 40), clean(entry["owner"] or "nobody named", 40)
    contact = f" ({clean(entry['contact'], 40)})" if entry["contact"] else ""
    yield f"   {team}: {_gain(entry, told)}; {_seen(entry)}; to be done by {owner}{contact}"
    if entry["title"] != group["title"]:
        yield f"     {clean(entry['title'], 300)}"
    yield f"     {entry['why_confidence']}"
    for line in entry["arithmetic"]:
        yield f"     = {clean(line, 300)}"


def _seen(entry: Mapping[str, Any]) -> str:
    return f"{_counted(entry['jobs'], 'job')}, seen {_counted(entry['times'], 'time')}"


def _counted(number: int, one: str) -> str:
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def what_if_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a what-if."""
    yield _sample(told["sample"], told["weeks"])
    for change in told["changes"]:
        yield f"if  {clean(change, 200)}"
    yield f"as it is  {_figures(told['before'])}"
    yield f"then      {_figures(told['after'])}"
    yield (
        f"{told['saved_gpu_h_week']:,.1f} GPU-h a week come back, {told['saved_held_gpu_h_week']:,.1f} of them held; "
        f"it makes a difference to {_counted(told['jobs_touched'], 'job')}"
    )
    for team, hours in sorted(told["by_team"].items(), key=lambda item: -item[1]):
        yield f"  {clean(team or '(no team)', 40)}  {hours:,.1f}"
    for note in told["notes"]:
        yield f"assumed: {note}"


def _sample(sample: Mapping[str, Any], weeks: float) -> str:
    part = "" if sample["share_pct"] >= 99.95 else f", {sample['share_pct']:.0f} % of the GPU time"
    return f"{sample['jobs']:,} of {_counted(sample['of_jobs'], 'job')}{part}, {weeks:.2f} weeks"


def _figures(figures: Mapping[str, Any]) -> str:
    def of(name: str, unit: str, divisor: float = 1.0) -> str:
        return "-" if figures[name] is None else f"{figures[name] / divisor:,.1f}{unit}"

    return (
        f"ETT {of('ett_pct', ' %')}  TTS {of('tts_p50_s', ' min', 60)}  TTR {of('ttr_mean_s', ' min', 60)}  "
        f"GPU-h {of('total_gpu_h', '')}, lost {of('lost_gpu_h', '')}"
    )
