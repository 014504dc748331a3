"""What all runs say together: for each remedy the figure that it acts on, before and after, and the aims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ettwatch_app.remedies.measure import Figures
from ettwatch_app.remedies.plan import ALL, BASELINE, Variant

Runs = Mapping[str, Sequence[Figures]]
"""The figures of all runs of one table, by variant."""


@dataclass(frozen=True, slots=True)
class Acts:
    """What a remedy acts on: a component, the figure that shows it, and what was published of it."""

    component: str
    figure: str
    words: str
    paper: str


ACTS = {
    "communication": Acts("trainer_init", "communication_s", "shard metadata, all starts", "start-up -41 % (with 2)"),
    "overlap": Acts("trainer_init", "tts_s", "time to start", "31.8 to 23.1 min on one model"),
    "dynamic_shapes": Acts("pt2_compilation", "compile_restart_s", "compile, restart", "part of compile -87.6 %"),
    "autotune": Acts("pt2_compilation", "compile_restart_s", "compile with tuning, restart", "part of compile -87.6 %"),
    "compile_cache": Acts("pt2_compilation", "compile_restart_s", "compile, restart", "cold compile -87.6 %"),
    "async_checkpoints": Acts("wasted_training", "save_blocking_s", "blocked by a save", "checkpoint blocking -77 %"),
    "standalone_publish": Acts("shutdown", "shutdown_s", "shutdown", "about 30 min less"),
    "cheap_recovery": Acts("all of a restart", "ttr_s", "time to recover", "1.8 to 8.6 times less"),
    ALL: Acts("all", "ttr_s", "time to recover", "ETT 59-85 to 80-93 %"),
}


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some runs, and the smallest and the largest of them."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Row:
    """One remedy: the figure it acts on without and with it, and the whole job with it."""

    remedy: str
    component: str
    figure: str
    words: str
    before: Spread
    after: Spread
    tts: Spread
    ttr: Spread
    ett: Spread
    runs: int
    paper: str


@dataclass(frozen=True, slots=True)
class Aim:
    """Something that was to be reached, and what was."""

    what: str
    wanted: str
    reached: float
    met: bool


def spread(runs: Runs, variant: str, figure: str) -> Spread:
    """One figure over the runs of a variant."""
    return Spread.of([getattr(run, figure) for run in runs[variant]])


def rows(runs: Runs, wanted: Sequence[Variant]) -> list[Row]:
    """The table: a row for each remedy and one for all, where there are runs of both sides."""
    made: list[Row] = []
    for variant in wanted:
        acts = ACTS.get(variant.name)
        if acts is None or not runs.get(variant.name) or not runs.get(variant.against):
            continue
        name = variant.name
        made.append(
            Row(
                name,
                acts.component,
                acts.figure,
                acts.words,
                spread(runs, variant.against, acts.figure),
                spread(runs, name, acts.figure),
                spread(runs, name, "tts_s"),
                spread(runs, name, "ttr_s"),
                spread(runs, name, "ett_pct"),
                len(runs[name]),
                acts.paper,
            )
        )
    return made


def aims(runs: Runs) -> list[Aim]:
    """What was to be reached, by medians of one bench; those whose runs are missing are left out."""

    def mid(variant: str, figure: str) -> float:
        return spread(runs, variant, figure).median

    def less(before: float, after: float) -> float:
        return 100 * (1 - after / before) if before else 0.0

    def times(before: float, after: float) -> float:
        return before / after if after else float("inf")

    made: list[Aim] = []

    def aim(what: str, wanted: str, needs: Sequence[str], reached: float, least: float) -> None:
        if all(runs.get(name) for name in needs):
            made.append(Aim(what, wanted, round(reached, 3), reached >= least))

    if not runs.get(BASELINE):
        return made
    if runs.get("communication"):
        ratio = times(mid(BASELINE, "communication_s"), mid("communication", "communication_s"))
        aim("communication in start-up, times less", "20", ["communication"], ratio, 20)
    if runs.get("compile_cache"):
        saved = less(mid(BASELINE, "compile_restart_s"), mid("compile_cache", "compile_restart_s"))
        aim("compile on a warm restart, % less than cold", "85", ["compile_cache"], saved, 85)
    if runs.get("async_checkpoints"):
        saved = less(mid(BASELINE, "save_blocking_s"), mid("async_checkpoints", "save_blocking_s"))
        aim("blocked by a checkpoint, % less", "77", ["async_checkpoints"], saved, 77)
    if runs.get("standalone_publish"):
        kept = mid("standalone_publish", "publish_s")
        saved = less(mid(BASELINE, "publish_s"), kept)
        aim("publishing inside the job, % less", "95", ["standalone_publish"], saved, 95)
    if runs.get(ALL):
        aim("TTS with everything on, % less", "41", [ALL], less(mid(BASELINE, "tts_s"), mid(ALL, "tts_s")), 41)
        aim("TTR with everything on, times less", "3", [ALL], times(mid(BASELINE, "ttr_s"), mid(ALL, "ttr_s")), 3)
        aim("ETT%, points more with everything on", "15.5", [ALL], mid(ALL, "ett_pct") - mid(BASELINE, "ett_pct"), 15.5)
    return made
