"""The report of one job."""

from collections.abc import Iterator
from statistics import median

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ettwatch_app.render.console import plain_table, show
from ettwatch_app.render.flags import in_words
from ettwatch_app.render.palette import LOOKS, ORDER, STATUS_STYLES
from ettwatch_app.render.text import GpuTime, clean, count, duration, moment, percent, share
from ettwatch_app.render.timeline import timeline
from ettwatch_app.render.views import JobView
from ettwatch_core.ownership import Owner
from ettwatch_schemas import EFFECTIVE, AttemptSummary, JobSummary, component_of

_MOST_ATTEMPTS = 20
_MOST_LISTED = 5
_WIDE = 80
_S = 1_000_000


def print_job(view: JobView, console: Console) -> None:
    """Print the report of one job."""
    show(console, *_parts(view, console))


def _parts(view: JobView, console: Console) -> Iterator[RenderableType]:
    yield from _head(view)
    yield ""
    yield from (Text.assemble(line) for line in timeline(view, console))
    yield ""
    yield _stages(view, console.width >= _WIDE)
    yield ""
    yield _figures(view)
    if view.attempts:
        yield ""
        yield from _attempts(view, console.width >= _WIDE)
    if view.summary.flags:
        yield ""
        for flag in view.summary.flags:
            yield Text.assemble((f"{clean(flag, 30)}: ", "yellow"), clean(in_words(flag), 200))


def _head(view: JobView) -> Iterator[Text]:
    job = view.summary
    yield Text.assemble((clean(job.job, 70), "bold"), "  ", (job.status, STATUS_STYLES.get(job.status, "bold")))
    facts = [f"{name} {clean(value, 24)}" for name, value in _origin(view) if value]
    facts += [count(job.gpus, "GPU"), count(job.attempts, "attempt"), count(job.nof, "failure")]
    yield Text(", ".join(facts), style="dim")
    yield Text(f"from {moment(job.t0)} to {moment(job.t1)}", style="dim")
    yield Text("")
    lost, gpu_lost = job.e2e_s - job.effective_s, job.gpu_e2e_s - job.gpu_effective_s
    unit = GpuTime.of([gpu_lost])
    yield Text.assemble(
        (f"ETT {share(job.ett_pct)}", "bold"),
        f"  {duration(job.effective_s)} of {duration(job.e2e_s)} trained on new data; ",
        f"{duration(lost)} was lost ({unit.write(gpu_lost)} {unit.long})",
    )
    losses = {stage: seconds for stage, seconds in job.stages.items() if stage != EFFECTIVE}
    if losses:
        worst = max(sorted(losses), key=lambda stage: losses[stage])
        owner = view.owners.of(worst, job.cluster, job.model)
        team = f", team {clean(owner.team, 40)}" if owner else ""
        yield Text(f"the largest part of it: {clean(worst, 60)}, {duration(losses[worst])}{team}")


def _origin(view: JobView) -> tuple[tuple[str, str | None], ...]:
    job = view.summary
    return ("team", job.team), ("model", job.model), ("cluster", job.cluster)


def _stages(view: JobView, wide: bool) -> Table:
    job = view.summary
    table = plain_table()
    table.add_column("where the time went", no_wrap=True)
    for name in ("time", "seconds", "share") if wide else ("time", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("team", overflow="fold")
    if wide:
        table.add_column("system", overflow="fold")
    owner_cells = 2 if wide else 1
    for name in ORDER:
        seconds = job.effective_s if name == EFFECTIVE else job.components[name]
        owner = view.owners.of(name, job.cluster, job.model)
        label = Text.assemble((LOOKS[name].letter, LOOKS[name].style), " ", (name, "bold"))
        table.add_row(label, *_amounts(seconds, job.e2e_s, wide), *_owned(owner)[:owner_cells])
        inside = {stage: s for stage, s in job.stages.items() if stage != EFFECTIVE and component_of(stage) == name}
        if set(inside) <= {name}:
            continue
        for stage in sorted(inside, key=lambda stage: (-inside[stage], stage)):
            own = view.owners.of(stage, job.cluster, job.model)
            shown = "(the rest)" if stage == name else clean(stage[len(name) :], 36)
            table.add_row(
                Text(f"    {shown}"),
                *(Text(cell, style="dim") for cell in _amounts(inside[stage], job.e2e_s, wide)),
                *(_owned(own)[:owner_cells] if own != owner else ()),
            )
    table.add_section()
    table.add_row(Text("  end to end", style="bold"), *_amounts(job.e2e_s, job.e2e_s, wide))
    return table


def _amounts(seconds: float, whole: float, wide: bool) -> tuple[str, ...]:
    exact = (f"{seconds:,.3f}",) if wide else ()
    return duration(seconds), *exact, percent(seconds, whole)


def _owned(owner: Owner | None) -> tuple[str, str]:
    if owner is None:
        return "-", "-"
    return clean(owner.team, 24), clean(owner.system or "", 24)


def _figures(view: JobView) -> Table:
    job = view.summary
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    started = "from allocated hardware to the first batch of the first attempt"
    table.add_row("TTS", "-" if job.tts_s is None else duration(job.tts_s), f"time to start: {started}")
    table.add_row("TTR", *_recoveries(job.ttr_s))
    table.add_row("NoF", f"{job.nof:,}", _failures(job))
    table.add_row("recovery", duration(job.recovery_s), "all time spent in recovering")
    rework = job.stages.get("wasted_training.rework", 0.0)
    table.add_row("rework", duration(rework), "training on data that had been passed before")
    table.add_row("unsaved", duration(job.unsaved_s), "training that failures discarded")
    table.add_row("hidden", duration(sum(job.hidden_s.values())), _hidden(job.hidden_s))
    late = sorted((span for span in view.spans if span.behind >= _S), key=lambda span: -span.behind)
    for span in late[:_MOST_LISTED]:
        what = f"rank {span.last_rank} was the last in {clean(span.phase, 40)} of attempt {span.attempt}"
        table.add_row("straggler", duration(span.behind / _S), what)
    return table


def _failures(job: JobSummary) -> str:
    if not job.nof:
        return "failures"
    what = f"failures; {job.nof_infra:,} of them by infrastructure"
    return f"{what}, of these {count(job.nof_preempted, 'preemption')}" if job.nof_preempted else what


def _recoveries(ttr_s: list[float]) -> tuple[str, str]:
    what = "time to recover: from a failure to the next first batch"
    if not ttr_s:
        return "-", what
    if len(ttr_s) == 1:
        return duration(ttr_s[0]), what
    return duration(median(ttr_s)), f"{what}; median of {len(ttr_s):,}, longest {duration(max(ttr_s))}"


def _hidden(hidden_s: dict[str, float]) -> str:
    what = "work in the shadow of a longer phase"
    most = sorted(hidden_s.items(), key=lambda item: (-item[1], item[0]))[:3]
    return what + "".join(f"; {clean(phase, 40)} {duration(s)}" for phase, s in most)


def _attempts(view: JobView, wide: bool) -> Iterator[RenderableType]:
    table = plain_table()
    middle = ("GPUs", "first batch", "effective") if wide else ("first batch",)
    for name in ("attempt", "begins after", "lasts", *middle):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("end", overflow="fold")
    shown = view.attempts[:_MOST_ATTEMPTS]
    for attempt in shown:
        first = None if attempt.first_batch is None else (attempt.first_batch - attempt.start) / _S
        table.add_row(
            str(attempt.attempt),
            duration((attempt.start - view.summary.t0) / _S),
            duration((attempt.end - attempt.start) / _S),
            *((f"{attempt.gpus:,}",) if wide else ()),
            "never" if first is None else f"+ {duration(first)}",
            *((duration(attempt.effective_s),) if wide else ()),
            _end(attempt),
        )
    yield table
    if len(shown) < len(view.attempts):
        yield Padding(Text(f"and {count(len(view.attempts) - len(shown), 'more attempt')}", style="dim"), (0, 0, 0, 2))


def _end(attempt: AttemptSummary) -> Text:
    if attempt.open:
        return Text("runs", style="green")
    outcome = attempt.outcome or "ended"
    text = Text(outcome, style="red" if outcome in ("failed", "preempted") else "")
    facts = []
    if attempt.cause and outcome in ("failed", "preempted"):
        facts.append(attempt.cause)
    if attempt.signal:
        facts.append(f"signal {attempt.signal}")
    elif attempt.exit_code:
        facts.append(f"exit code {attempt.exit_code}")
    if "inferred_end" in attempt.flags:
        facts.append("no goodbye")
    if attempt.message:
        facts.append(clean(attempt.message, 40))
    if facts:
        text.append(f": {', '.join(facts)}", style="default")
    return text
