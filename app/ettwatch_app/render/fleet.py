"""The report of many jobs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ettwatch_app.render.console import plain_table, show
from ettwatch_app.render.palette import LOOKS, STATUS_STYLES
from ettwatch_app.render.text import GpuTime, clean, count, duration, percent, share
from ettwatch_app.render.views import FleetView, Order
from ettwatch_schemas import COMPONENTS, EFFECTIVE, JobSummary, component_of

_WHICH: Final[Mapping[Order, str]] = {
    "newest": "the {} newest of {} jobs",
    "lost": "the {} of {} jobs that lost most",
    "ett": "the {} of {} jobs with the lowest ETT",
    "tts": "the {} of {} jobs that started slowest",
    "nof": "the {} of {} jobs that failed most often",
}


def print_fleet(view: FleetView, console: Console) -> None:
    """Print the report of many jobs."""
    show(console, *_parts(view, console.width))


def _parts(view: FleetView, width: int) -> Iterator[RenderableType]:
    lost = view.gpu_e2e_s - view.gpu_stage_s.get(EFFECTIVE, 0.0)
    yield Text.assemble(
        (f"ETT {share(view.ett_pct)}", "bold"),
        f"  weighted by GPUs, {share(view.mean_ett_pct)} unweighted; {count(view.number, 'job')}, "
        f"{count(view.nof, 'failure')}",
    )
    unit = GpuTime.of([view.gpu_e2e_s])
    yield Text(f"{unit.write(lost)} of {unit.write(view.gpu_e2e_s)} {unit.long} were lost")
    yield ""
    yield _losses(view)
    yield ""
    yield jobs_table(view.jobs, width)
    if len(view.jobs) < view.number:
        which = _WHICH[view.order].format(f"{len(view.jobs):,}", f"{view.number:,}")
        yield Text(f"{which}; --limit shows more", style="dim")


def _losses(view: FleetView) -> Table:
    """Lost GPU time by component, and inside it by the teams that own its stages."""
    lost = {
        component: {s: v for s, v in view.gpu_stage_s.items() if s != EFFECTIVE and component_of(s) == component}
        for component in COMPONENTS
    }
    unit = GpuTime.of(sum(stages.values()) for stages in lost.values())
    table = plain_table()
    table.add_column("lost to", overflow="fold")
    table.add_column(unit.long, justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("team", overflow="fold")
    table.add_column("contact", overflow="fold")
    for component, stages in lost.items():
        total = sum(stages.values())
        owner = view.owners.of(component)
        table.add_row(
            Text.assemble((LOOKS[component].letter, LOOKS[component].style), " ", (component, "bold")),
            unit.write(total),
            percent(total, view.gpu_e2e_s),
            clean(owner.team, 30) if owner else "-",
            clean(owner.contact or "", 30) if owner else "",
        )
        for stage, seconds in sorted(stages.items(), key=lambda item: (-item[1], item[0])):
            own = view.owners.of(stage)
            if own is not None and own != owner:
                table.add_row(
                    Text(f"    {clean(stage[len(component) :], 40)}"),
                    Text(unit.write(seconds), style="dim"),
                    Text(percent(seconds, view.gpu_e2e_s), style="dim"),
                    clean(own.team, 30),
                    clean(own.contact or "", 30),
                )
    return table


def jobs_table(jobs: Iterable[JobSummary], width: int) -> Table:
    """A table of jobs, one a row; fewer columns where there are less than 120 for it. `lost` is GPU time."""
    jobs, wide = list(jobs), width >= 120
    unit = GpuTime.of(job.gpu_e2e_s - job.gpu_effective_s for job in jobs)
    table = plain_table()
    table.add_column("job", overflow="fold", max_width=40)
    table.add_column("status", no_wrap=True)
    for name in ("ETT", *(("effective",) if wide else ()), "end to end", "GPUs", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in (*(("attempts",) if wide else ()), "NoF", "TTS"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("most lost to", overflow="fold")
    for job in jobs:
        worst = max(COMPONENTS, key=lambda name: job.components[name])
        table.add_row(
            clean(job.job, 40),
            Text(job.status, style=STATUS_STYLES.get(job.status, "")),
            share(job.ett_pct),
            *((duration(job.effective_s),) if wide else ()),
            duration(job.e2e_s),
            f"{job.gpus:,}",
            f"{unit.write(job.gpu_e2e_s - job.gpu_effective_s)} {unit.sign}",
            *((f"{job.attempts:,}",) if wide else ()),
            f"{job.nof:,}",
            "-" if job.tts_s is None else duration(job.tts_s),
            worst if job.components[worst] > 0 else "-",
        )
    return table
