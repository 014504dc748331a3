"""Whom to preempt, as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ettwatch_app.render.console import plain_table
from ettwatch_app.render.text import GpuTime, clean, count, duration

if TYPE_CHECKING:
    from ettwatch_monitor.preempt import Later, Live, Plan, Waste

_MOST_LINES: Final = 20


def plan_parts(plan: "Plan", live: "Live", limit: int, width: int) -> Iterator[RenderableType]:
    """Yield the plan, what waiting would save, at most `limit` jobs, and what is not known of them."""
    shown = _shown(plan, limit)
    unit = GpuTime.of((plan.gpu_s, *(waste.gpu_s for waste in shown)))._replace(decimals=1)
    yield _head(plan, unit)
    if plan.later is not None:
        yield from _later(plan, plan.later, unit)
    if shown:
        yield Text("")
        yield _table(plan, shown, width, unit)
        then = f"then: {unit.short} that it wastes right after that"
        yield Text(f"* preempt it, - excluded; in: until its next checkpoint, {then}")
    rest = len(plan.ranked) - len(shown)
    if rest:
        yield Text(f"{rest:,} more; --limit shows them")
    notes = [f"{clean(w.job.job, 40)}: {note}" for w in shown for note in w.job.notes]
    notes += [f"not counted: {clean(left.job, 40)} ({left.gpus:,} GPUs): {left.why}" for left in live.left_out]
    if notes:
        yield Text("")
    for note in notes[:_MOST_LINES]:
        yield Text(note)
    if len(notes) > _MOST_LINES:
        yield Text(f"{len(notes) - _MOST_LINES:,} more notes; --format json has them all")


def _head(plan: "Plan", unit: GpuTime) -> Text:
    if not plan.enough:
        return Text(
            f"cannot free {count(plan.gpus, 'GPU')}: {count(len(plan.ranked) - len(plan.kept), 'job')} that may be "
            f"preempted hold {plan.could_free:,}",
            style="bold",
        )
    text = Text(
        f"preempt {count(len(plan.chosen), 'job')}: frees {plan.freed:,} for {plan.gpus:,} asked for, wastes "
        f"{unit.write(plan.gpu_s)} {unit.short}",
        style="bold",
    )
    if not plan.exact:
        least = f"{unit.write(plan.bound_ms / 1_000)} {unit.short}"
        text.append(f"; too many jobs for the best choice, which wastes at least {least}")
    return text


def _later(plan: "Plan", later: "Later", unit: GpuTime) -> Iterator[Text]:
    yield Text(
        f"waiting {duration(later.wait_s)} for checkpoints: {count(len(later.chosen), 'job')}, frees {later.freed:,}, "
        f"wastes {unit.write(later.gpu_s)} {unit.short}, {unit.write(plan.gpu_s - later.gpu_s)} less"
    )
    for waste, wait in list(zip(later.chosen, later.waits_s, strict=True))[:_MOST_LINES]:
        yield Text(f"  {f'in {duration(wait)}' if wait else 'now':<12}  {clean(waste.job.job, 60)}")
    if len(later.chosen) > _MOST_LINES:
        yield Text(f"  {len(later.chosen) - _MOST_LINES:,} more; --format json has them all")


def _shown(plan: "Plan", limit: int) -> list["Waste"]:
    """Return the first jobs, but all that are chosen first."""
    names = {waste.job.job for waste in plan.chosen}
    others = [waste for waste in plan.ranked if waste.job.job not in names]
    return [*plan.chosen, *others][: max(limit, len(plan.chosen))]


_COLUMNS: Final = ("", "job", "team", "cluster", "state", "GPUs", "lost", "recovery", "GPU time", "in", "then")
_NAMES: Final = ("", "job", "team", "cluster", "state")
_LEAST_NAME: Final = 12


def _table(plan: "Plan", shown: list["Waste"], width: int, unit: GpuTime) -> Table:
    """Draw jobs. Figures are never cut: where it is narrow names are, and the place goes first."""
    names = {waste.job.job for waste in plan.chosen}
    rows = [
        _row(waste, "*" if waste.job.job in names else "-" if waste.job.job in plan.kept else "", unit)
        for waste in shown
    ]
    columns = list(_COLUMNS)
    for optional in ("cluster", "team", "then", "in", "state"):
        if _rest(columns, rows, width) >= _LEAST_NAME:
            break
        columns.remove(optional)
    cells = max(_LEAST_NAME, _rest(columns, rows, width))
    table = plain_table()
    for name in columns:
        title = unit.short if name == "GPU time" else name
        table.add_column(title, justify="left" if name in _NAMES else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(clean(row[name], cells) if name == "job" else row[name] for name in columns))
    return table


def _rest(columns: list[str], rows: list[dict[str, str]], width: int) -> int:
    """Return how many cells are left for names of jobs."""
    return (
        width - sum(max(len(name), *(cell_len(row[name]) for row in rows)) + 2 for name in columns if name != "job") - 2
    )


def _row(waste: "Waste", mark: str, unit: GpuTime) -> dict[str, str]:
    job, after = waste.job, waste.after_gpu_s
    cells = (
        *(mark, job.job, clean(job.team or "-", 12), clean(job.cluster or "-", 12), job.state, f"{job.gpus:,}"),
        *(duration(waste.lost_s), duration(waste.recovery_s), unit.write(waste.gpu_s)),
        *("-" if waste.wait_s is None else duration(waste.wait_s), "-" if after is None else unit.write(after)),
    )
    return dict(zip(_COLUMNS, cells, strict=True))
