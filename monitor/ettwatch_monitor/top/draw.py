"""A look at the fleet as text for a terminal of any size."""

from datetime import UTC, datetime
from typing import Final

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ettwatch_monitor.top.look import Look
from ettwatch_schemas import COMPONENTS, EFFECTIVE

_STYLES: Final = {
    EFFECTIVE: "green",
    "scheduling": "bright_black",
    "hardware_setup": "yellow",
    "trainer_init": "blue",
    "pt2_compilation": "magenta",
    "wasted_training": "red",
    "shutdown": "cyan",
}
_LETTERS: Final = dict(zip((EFFECTIVE, *COMPONENTS), "=SHICWD", strict=True))
_SEVERITY: Final = {"critical": "bold red", "warning": "yellow"}
_LEAST_ROWS: Final = 3
_WIDE: Final = 110


def draw(look: Look, width: int, height: int, stale: str | None = None) -> RenderableType:
    """Return a look as something to print.

    Args:
        look: The fleet.
        width, height: Cells of the terminal; what does not fit is left out, jobs first.
        stale: Why it is old; None where it is not.
    """
    parts: list[RenderableType] = [_head(look), _bar(look, width), _legend(look)]
    left = height - 4 - len(look.alerts[:_LEAST_ROWS])
    if stale is not None:
        parts.insert(0, Text(f"old: {plain(stale, width - 5)}", style="bold yellow", no_wrap=True))
        left -= 1
    parts += [
        Text(f"! {plain(alert.title, width - 2)}", style=_SEVERITY.get(alert.severity, ""), no_wrap=True)
        for alert in look.alerts[:_LEAST_ROWS]
    ]
    groups = min(len(look.groups), max(_LEAST_ROWS, left // 3 - 2))
    parts += [Text(""), _groups(look, groups)]
    left -= groups + 3
    parts += [Text(""), _jobs(look, width, max(_LEAST_ROWS, left - 2))]
    return Stack(*parts)


def plain(text: str, cells: int) -> str:
    """Make a text that came from outside safe to show, in one line of at most so many cells."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return shown if len(shown) <= cells else f"{shown[: max(0, cells - 1)]}\N{HORIZONTAL ELLIPSIS}"


def _head(look: Look) -> Text:
    total = look.total
    at = datetime.fromtimestamp(look.at_us / 1_000_000, UTC).strftime("%H:%M:%S")
    jobs = ", ".join(f"{count:,} {status}" for status, count in look.statuses.items()) or "no live job"
    return Text.assemble(
        (f"ETT {_number(total.ett_pct, ' %')}", "bold"),
        f"  last {look.hours} h  lost {total.lost_gpu_h:,.0f} of {total.total_gpu_h:,.0f} GPU-h"
        f"  TTS {_minutes(total.tts_p50_s)}  TTR {_minutes(total.ttr_p50_s)}  failures {total.nof:,}"
        f"  |  {jobs}  |  {len(look.alerts):,} alerts  {at} UTC",
        no_wrap=True,
        overflow="ellipsis",
    )


def _bar(look: Look, width: int) -> Text:
    """All GPU time as one bar: a letter and a colour for each component."""
    text, total = Text(no_wrap=True), sum(look.components.values())
    at = 0.0
    for name in (EFFECTIVE, *COMPONENTS):
        part = look.components.get(name, 0.0)
        cells = round((at + part) / total * width) - round(at / total * width) if total else 0
        text.append(_LETTERS[name] * cells, style=_STYLES[name])
        at += part
    return text


def _legend(look: Look) -> Text:
    text, total = Text(no_wrap=True, overflow="ellipsis"), sum(look.components.values())
    for name in (EFFECTIVE, *COMPONENTS):
        part = look.components.get(name, 0.0)
        text.append(f"{_LETTERS[name]} {name} {100 * part / total if total else 0:.1f} %  ", style=_STYLES[name])
    return text


def _groups(look: Look, rows: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(look.by, no_wrap=True, overflow="ellipsis")
    for name in ("lost GPU-h", "before", "ETT", "TTS", "TTR", "failures"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in look.groups[:rows]:
        figures = group.figures
        table.add_row(
            plain(group.key or f"(no {look.by})", 30),
            f"{group.lost_gpu_h:,.1f}",
            _number(group.before_lost_gpu_h, ""),
            "-" if figures is None else _number(figures.ett_pct, " %"),
            "-" if figures is None else _minutes(figures.tts_p50_s),
            "-" if figures is None else _minutes(figures.ttr_p50_s),
            "-" if figures is None else f"{figures.nof:,}",
        )
    return table


def _jobs(look: Look, width: int, rows: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("job", no_wrap=True, overflow="ellipsis", max_width=40)
    table.add_column("status", no_wrap=True)
    wide = width >= _WIDE
    for name in ("team", "model") if wide else ():
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for name in ("GPUs", "attempts", "failures", "ETT", "lost GPU-h"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("most lost to", no_wrap=True, overflow="ellipsis")
    for job in look.jobs[:rows]:
        table.add_row(
            plain(job.job, 40),
            Text(job.status, style="green" if job.status == "training" else "yellow"),
            *((plain(job.team or "-", 20), plain(job.model or "-", 20)) if wide else ()),
            f"{job.gpus:,}",
            f"{job.attempts:,}",
            f"{job.nof:,}",
            _number(job.ett_pct, " %"),
            f"{job.lost_gpu_h:,.1f}",
            plain(job.worst_stage or "-", 40),
        )
    hidden = sum(look.statuses.values()) - min(rows, len(look.jobs))
    if hidden > 0:
        table.caption, table.caption_justify = f"{hidden:,} more", "left"
    return table


def _number(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.1f}{unit}"


def _minutes(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds / 60:,.1f} min"
