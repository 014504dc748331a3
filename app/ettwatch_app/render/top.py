"""A look at the fleet as text for a terminal of any size."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ettwatch_app.render.console import plain_table
from ettwatch_app.render.palette import LOOKS, ORDER
from ettwatch_app.render.text import GpuTime, clean, count, duration, share

if TYPE_CHECKING:
    from ettwatch_monitor.top import Look

_SEVERITY: Final = {"critical": "bold red", "warning": "yellow"}
_LEAST_ROWS: Final = 3
_MOST_LINES: Final = 2
_WIDE: Final = 110
_NARROW: Final = 100
_HOUR_S: Final = 3_600


def draw_top(look: "Look", width: int, height: int, stale: str | None = None) -> RenderableType:
    """Return a look as something to print.

    Args:
        look: The fleet.
        width, height: Cells of the terminal; what does not fit is left out, jobs first.
        stale: Why it is old; None where it is not.
    """
    parts: list[RenderableType] = []
    if stale is not None:
        parts.append(Text(f"old: {clean(stale, width - 5)}", style="bold yellow", no_wrap=True))
    parts += [*_head(look, width), _bar(look, width), *_legend(look, width)]
    parts += [
        Text(f"! {clean(alert.title, width - 2)}", style=_SEVERITY.get(alert.severity, ""), no_wrap=True)
        for alert in look.alerts[:_LEAST_ROWS]
    ]
    left = height - 1 - len(parts)
    groups = min(len(look.groups), max(_LEAST_ROWS, left // 3 - 2))
    left -= groups + 3
    parts += ["", _groups(look, groups)]
    if look.jobs:
        parts += ["", _jobs(look, width, max(_LEAST_ROWS, left - 2))]
    return Stack(*parts)


def _head(look: "Look", width: int) -> list[Text]:
    total = look.total
    unit = _unit(total.total_gpu_h)
    at = datetime.fromtimestamp(look.at_us / 1_000_000, UTC).strftime("%H:%M:%S UTC")
    jobs = ", ".join(f"{number:,} {status}" for status, number in look.statuses.items()) or "no live job"
    entries = [
        Text(f"ETT {share(total.ett_pct)}", style="bold"),
        Text(f"last {look.hours} h"),
        Text(f"lost {_in(unit, total.lost_gpu_h)} of {_in(unit, total.total_gpu_h)} {unit.short}"),
        Text(f"TTS {_lasts(total.tts_p50_s)}"),
        Text(f"TTR {_lasts(total.ttr_p50_s)}"),
        Text(count(total.nof, "failure")),
        Text(jobs),
        Text(count(len(look.alerts), "alert")),
        Text(at),
    ]
    while len(lines := _lines(entries, width)) > _MOST_LINES:
        entries.pop()  # the clock first
    return lines


def _bar(look: "Look", width: int) -> Text:
    """All GPU time as one bar: a letter and a colour for each component."""
    text, total = Text(no_wrap=True), sum(look.components.values())
    at = 0.0
    for name in ORDER:
        part = look.components.get(name, 0.0)
        cells = round((at + part) / total * width) - round(at / total * width) if total else 0
        text.append(LOOKS[name].letter * cells, style=LOOKS[name].style)
        at += part
    return text


def _legend(look: "Look", width: int) -> list[Text]:
    """What the letters mean; where there is no room for all of them, the smallest parts are left out."""
    total = sum(look.components.values())
    parts = {name: 100 * look.components.get(name, 0.0) / total if total else 0.0 for name in ORDER}
    entries = {
        name: Text(f"{LOOKS[name].letter} {name.replace('_training', '')} {part:.1f} %", style=LOOKS[name].style)
        for name, part in parts.items()
    }
    while len(lines := _lines(list(entries.values()), width)) > _MOST_LINES:
        del entries[min(entries, key=parts.__getitem__)]
    return lines


def _lines(entries: Sequence[Text], width: int) -> list[Text]:
    """Put entries into lines, two spaces apart; none is broken."""
    lines: list[Text] = []
    for entry in entries:
        if lines and lines[-1].cell_len + 2 + entry.cell_len <= width:
            lines[-1].append("  ").append_text(entry)
        else:
            lines.append(Text(no_wrap=True, overflow="ellipsis").append_text(entry))
    return lines


def _groups(look: "Look", rows: int) -> Table:
    shown = look.groups[:rows]
    unit = _unit(*(group.lost_gpu_h for group in shown), *(group.before_lost_gpu_h for group in shown))
    table = plain_table()
    table.add_column(look.by, no_wrap=True, overflow="ellipsis")
    for name in (f"lost {unit.short}", "before", "ETT", "TTS", "TTR", "failures"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in shown:
        figures = group.figures
        table.add_row(
            clean(group.key or f"(no {look.by})", 30),
            _in(unit, group.lost_gpu_h),
            _in(unit, group.before_lost_gpu_h),
            "-" if figures is None else share(figures.ett_pct),
            "-" if figures is None else _lasts(figures.tts_p50_s),
            "-" if figures is None else _lasts(figures.ttr_p50_s),
            "-" if figures is None else f"{figures.nof:,}",
        )
    return table


def _jobs(look: "Look", width: int, rows: int) -> Table:
    shown = look.jobs[:rows]
    unit = _unit(*(job.lost_gpu_h for job in shown))
    table = plain_table()
    table.add_column("job", no_wrap=True)
    table.add_column("status", no_wrap=True)
    wide, narrow = width >= _WIDE, width < _NARROW
    for name in ("team", "model") if wide else ():
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for name in ("GPUs", *(() if narrow else ("attempts",)), "failures", "ETT", f"lost {unit.short}"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("most lost to", no_wrap=True, overflow="ellipsis")
    for job in shown:
        table.add_row(
            clean(job.job, 18 if narrow else 40),  # names are cut, and no figures
            Text(job.status, style="green" if job.status == "training" else "yellow"),
            *((clean(job.team or "-", 20), clean(job.model or "-", 20)) if wide else ()),
            f"{job.gpus:,}",
            *(() if narrow else (f"{job.attempts:,}",)),
            f"{job.nof:,}",
            share(job.ett_pct),
            _in(unit, job.lost_gpu_h),
            clean(job.worst_stage or "-", max(12, width - 66) if narrow else 40),
        )
    hidden = sum(look.statuses.values()) - len(shown)
    if hidden > 0:
        table.caption, table.caption_justify = f"{hidden:,} more", "left"
    return table


def _unit(*gpu_h: float | None) -> GpuTime:
    return GpuTime.of((each or 0.0) * _HOUR_S for each in gpu_h)


def _in(unit: GpuTime, gpu_h: float | None) -> str:
    return "-" if gpu_h is None else unit.write(gpu_h * _HOUR_S)


def _lasts(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)
