"""Advice: what each remedy would give back to each team in a week, and who can do it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ettwatch_core.ownership import Owners
from ettwatch_monitor.advice.figures import Figures
from ettwatch_monitor.advice.fleet import Fleet
from ettwatch_monitor.advice.life import Life
from ettwatch_monitor.advice.remedies import REMEDIES, Confidence, Remedy
from ettwatch_monitor.advice.replays import Outcome, Replays

_ENOUGH: Final = 20
"""From so many cases on, chance matters little."""
_FEW: Final = 5
_LEAST_GPU_H: Final = 0.01
_NOT_TOGETHER: Final = ("compile_cache_per_job", "keep_hosts", "save_on_notice")
"""What is part of another remedy, or too doubtful to be counted with all."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a remedy would give back to a team.

    Attributes:
        remedy: What can be done.
        team: Whose jobs they are; None for jobs that name none.
        owner, contact: Who can do it; None where nobody owns the stage.
        gpu_h_week: GPU-hours that come back in a week, waits for hardware counted.
        held_gpu_h_week: Of those, what was held.
        jobs: Jobs that it makes a difference to, of those looked at.
        times: How often what it cures was seen.
        confidence, error_pct, why: How far to trust it.
        arithmetic: What was counted, and the sum.
        before, after: Figures of the team.
    """

    remedy: Remedy
    team: str | None
    owner: str | None
    contact: str | None
    gpu_h_week: float
    held_gpu_h_week: float
    jobs: int
    times: int
    confidence: Confidence
    error_pct: float | None
    why: str
    arithmetic: tuple[str, ...]
    before: Figures
    after: Figures


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for a fleet.

    Attributes:
        entries: What would give back most, first.
        base: The fleet as it was.
        together: With all remedies at a time (without those that are part of others, or doubtful).
        weeks: How long the time is that was looked at.
        error_pct: By how much laying out anew is off by itself.
    """

    entries: tuple[Entry, ...]
    base: Figures
    together: Figures
    weeks: float
    error_pct: float


def advise(fleet: Fleet, owners: Owners, weeks: float, remedies: Sequence[Remedy] = REMEDIES) -> Advice:
    """Try each remedy on a fleet.

    Args:
        fleet: As it was observed.
        owners: Who owns which stage.
        weeks: The length of the time that was looked at.
        remedies: Which ones.
    """
    replays = Replays(fleet)
    entries = [
        entry
        for remedy in remedies
        for entry in _entries(remedy, replays.under(remedy.changes), fleet, owners, weeks, replays.error_pct())
    ]
    entries.sort(key=lambda entry: (-entry.gpu_h_week, entry.remedy.name, entry.team or ""))
    all_ = tuple(change for remedy in remedies if remedy.name not in _NOT_TOGETHER for change in remedy.changes)
    before, after = replays.under(all_).figures()
    return Advice(tuple(entries), before, after, weeks, replays.error_pct())


def _entries(remedy: Remedy, outcome: Outcome, fleet: Fleet, owners: Owners, weeks: float, off: float) -> list[Entry]:
    teams: defaultdict[str | None, list[int]] = defaultdict(list)
    for i, case in enumerate(outcome.cases):
        teams[case.life.team].append(i)
    touched = set(outcome.touched())
    out = []
    for team, jobs in teams.items():
        saved = [outcome.saved(i) for i in jobs]
        total, held = sum(s.gpu_h for s in saved), sum(s.held_gpu_h for s in saved)
        if total / weeks < _LEAST_GPU_H:
            continue
        lives = [fleet.cases[i].life for i in jobs]
        before, after = outcome.figures(jobs)
        owner = owners.of(remedy.stage, *_common(lives))
        times = remedy.counts(fleet, lives)
        confidence, why = _trust(remedy, times, off)
        sample = "" if all(fleet.cases[i].weight == 1 for i in jobs) else ", scaled up from a sample"
        out.append(
            Entry(
                remedy=remedy,
                team=team,
                owner=None if owner is None else owner.team,
                contact=None if owner is None else owner.contact,
                gpu_h_week=total / weeks,
                held_gpu_h_week=held / weeks,
                jobs=len(touched.intersection(jobs)),
                times=times,
                confidence=confidence,
                error_pct=remedy.error_pct,
                why=why,
                arithmetic=(
                    *remedy.shows(fleet, lives),
                    f"replayed as it was: {before.total_gpu_h:,.1f} GPU-h, {before.effective_gpu_h:,.1f} effective; "
                    f"with it: {after.total_gpu_h:,.1f}, {after.effective_gpu_h:,.1f} effective",
                    f"difference {total:,.1f} GPU-h in {weeks:,.2f} weeks{sample}: {total / weeks:,.1f} GPU-h a week",
                ),
                before=before,
                after=after,
            )
        )
    return out


def _common(lives: Sequence[Life]) -> tuple[str | None, str | None]:
    """The cluster and the model, where all jobs have the same."""
    clusters = {life.cluster for life in lives}
    models = {life.model for life in lives}
    return (
        clusters.pop() if len(clusters) == 1 else None,
        models.pop() if len(models) == 1 else None,
    )


def _trust(remedy: Remedy, times: int, off: float) -> tuple[Confidence, str]:
    """How far to trust a prediction: less where there are few cases, or where laying out anew is off by itself."""
    if times < _FEW:
        return "low", f"{remedy.why}; {_few(times)}"
    if off > 5:
        return "low", f"{remedy.why}; these jobs laid out anew are {off:.0f} % off"
    if times < _ENOUGH and remedy.confidence == "high":
        return "medium", f"{remedy.why}; {_few(times)}"
    return remedy.confidence, remedy.why


def _few(times: int) -> str:
    return "only 1 case was seen" if times == 1 else f"only {times} cases were seen"


__all__ = ["Advice", "Entry", "advise"]
