"""Advice and what-if as lines of text."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ettwatch_app.render.text import GpuTime, clean, duration

_HOUR_S: Final = 3_600
_WEEK_S: Final = 7 * 24 * _HOUR_S
_LEAST_WEEKS: Final = 0.1
"""From this many weeks on a week is made up from them."""


def advice_lines(told: Mapping[str, Any], limit: int) -> Iterator[str]:
    """Yield the lines of advice, by remedy; with `limit` entries in all."""
    job, unit = told["asked"]["job"], _unit(told["base"]["total_gpu_h"])
    yield f"job {clean(job, 200)}" if job else _sample(told["sample"], told["weeks"])
    yield f"as it is          {_figures(told['base'], unit)}"
    yield f"all shown here    {_figures(told['all'], unit)}"
    stage = told["of_stage"]
    if stage is not None:
        unit = _unit(stage["lost_gpu_h"], stage["after_gpu_h"])
        after = _in(unit, stage["after_gpu_h"])
        yield f"{stage['stage']}: {_in(unit, stage['lost_gpu_h'])} {unit.short} as it is, {after} with all shown"
    yield ""
    if not told["advice"]:
        yield "no remedy would give back as much as a thousandth of what was lost"
    left = limit
    for number, group in enumerate(told["groups"], 1):
        if left <= 0:
            break
        entries = [told["advice"][i] for i in group["entries"][:left]]
        left -= len(entries)
        yield f"{number}. {group['title']}: {_gain(group, told)}"
        yield f"   {group['remedy']}{_part(group)}"
        for overlap in group["overlaps"]:
            yield f"   {overlap['text']} ({_amount(overlap['gpu_h'])})"
        for entry in entries:
            yield from _entry(entry, group, told)
        yield f"   assumed: {'; '.join(entries[0]['assumptions'])}"
    rest = max(0, len(told["advice"]) - limit)
    if rest > 0:
        yield f"{rest:,} more; --limit shows them"


def _gain(part: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    unit = _unit(part["gpu_h"])
    share = "" if part["lost_pct"] is None else f" ({part['lost_pct']:.0f} % of what was lost)"
    of_stage = part["stage_gpu_h"]
    stage = "" if of_stage is None else f", {_in(unit, of_stage)} of it in {told['asked']['stage']}"
    once = told["asked"]["job"] or told["weeks"] < _LEAST_WEEKS
    week = "" if once else f", {_in(unit, part['gpu_h_week'])} a week"
    return f"{_in(unit, part['gpu_h'])} {unit.short}{share}{stage}{week}"


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
    unit, weeks = _unit(told["before"]["total_gpu_h"]), told["weeks"]
    yield _sample(told["sample"], weeks)
    for change in told["changes"]:
        yield f"if  {clean(change, 200)}"
    yield f"as it is  {_figures(told['before'], unit)}"
    yield f"then      {_figures(told['after'], unit)}"
    # A week that is made up from some minutes says nothing.
    back, scale = ("a week come back", 1) if weeks >= _LEAST_WEEKS else ("come back", weeks)
    saved, held = told["saved_gpu_h_week"] * scale, told["saved_held_gpu_h_week"] * scale
    unit = _unit(saved, held)
    yield (
        f"{_in(unit, saved)} {unit.short} {back}, {_in(unit, held)} of them held; "
        f"it makes a difference to {_counted(told['jobs_touched'], 'job')}"
    )
    for team, gpu_h in sorted(told["by_team"].items(), key=lambda item: -item[1]):
        yield f"  {clean(team or '(no team)', 40)}  {_in(unit, gpu_h * scale)}"
    for note in told["notes"]:
        yield f"assumed: {note}"


def _sample(sample: Mapping[str, Any], weeks: float) -> str:
    part = "" if sample["share_pct"] >= 99.95 else f", {sample['share_pct']:.0f} % of the GPU time"
    return f"{sample['jobs']:,} of {_counted(sample['of_jobs'], 'job')}{part}, {_weeks(weeks)}"


def _weeks(weeks: float) -> str:
    return f"{weeks:,.2f} weeks" if weeks >= _LEAST_WEEKS else duration(weeks * _WEEK_S)


def _unit(*gpu_h: float | None) -> GpuTime:
    """The unit of what is compared, to a tenth: so are the sums that stand below."""
    return GpuTime.of((each or 0.0) * _HOUR_S for each in gpu_h)._replace(decimals=1)


def _in(unit: GpuTime, gpu_h: float | None) -> str:
    return "-" if gpu_h is None else unit.write(gpu_h * _HOUR_S)


def _amount(gpu_h: float) -> str:
    unit = _unit(gpu_h)
    return f"{_in(unit, gpu_h)} {unit.short}"


def _figures(figures: Mapping[str, Any], unit: GpuTime) -> str:
    def lasts(name: str) -> str:
        return "-" if figures[name] is None else duration(figures[name])

    ett = "-" if figures["ett_pct"] is None else f"{figures['ett_pct']:,.1f} %"
    return (
        f"ETT {ett}  TTS {lasts('tts_p50_s')}  TTR {lasts('ttr_mean_s')}  "
        f"{unit.short} {_in(unit, figures['total_gpu_h'])}, lost {_in(unit, figures['lost_gpu_h'])}"
    )
