"""Advice: what each remedy would give back, to which team, and who can do it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ettwatch_core.ownership import Owners
from ettwatch_monitor.advice.arithmetic import arithmetic
from ettwatch_monitor.advice.entry import Advice, Entry, Gainer, Group, OfStage, Sum
from ettwatch_monitor.advice.evidence import slow_hosts
from ettwatch_monitor.advice.fleet import Fleet, Replayed
from ettwatch_monitor.advice.life import Life
from ettwatch_monitor.advice.overlap import TRIED, Cuts, added, cuts, overlaps
from ettwatch_monitor.advice.remedies import REMEDIES, Remedy
from ettwatch_monitor.advice.replays import Outcome, Replays
from ettwatch_monitor.advice.titles import title_of
from ettwatch_monitor.advice.trust import trust

_LEAST_GPU_H: Final = 0.01
_LEAST_SHARE: Final = 0.001
"""What gives back less than both in a week, GPU-hours and a share of what was lost, is not told."""
_GAINERS: Final = 20
NOT_TOGETHER: Final = ("compile_cache_per_job", "keep_hosts", "save_on_notice")
"""What is part of another remedy, or too doubtful to be counted with all."""


@dataclass(frozen=True, slots=True)
class About:
    """What advice is asked about.

    Attributes:
        job: This job only; what others tell of its kind is used all the same. None: all.
        stage: What gives back time of this stage, or of one under it. None: all.
        owner: What this owner can do. None: all.
    """

    job: str | None = None
    stage: str | None = None
    owner: str | None = None


def advise(
    fleet: Fleet, owners: Owners, weeks: float, remedies: Sequence[Remedy] = REMEDIES, about: About | None = None
) -> Advice:
    """Try each remedy on a fleet.

    Args:
        fleet: As it was observed.
        owners: Who owns which stage.
        weeks: The length of the time that was looked at.
        remedies: Which ones.
        about: What is asked; None: all of it.
    """
    return _Advising(fleet, owners, weeks, About() if about is None else about).run(remedies)


class _Advising:
    def __init__(self, fleet: Fleet, owners: Owners, weeks: float, about: About) -> None:
        self._fleet, self._owners, self._weeks, self._about = fleet, owners, weeks, about
        self._replays = Replays(fleet, None if about.job is None else frozenset({about.job}))
        self._teams: defaultdict[str | None, list[int]] = defaultdict(list)
        for i, case in enumerate(self._replays.cases):
            self._teams[case.life.team].append(i)

        plain, _ = self._replays.under(()).figures()
        self._least = min(_LEAST_GPU_H * weeks, _LEAST_SHARE * plain.lost_gpu_h)

    def run(self, remedies: Sequence[Remedy]) -> Advice:
        drafts = [draft for remedy in remedies for draft in self._drafts(remedy, self._replays.under(remedy.changes))]
        pairs = self._pairs({entry.remedy.name: entry.remedy for entry, _ in drafts})
        entries = []
        for team, jobs in self._teams.items():
            of_team = [draft for draft in drafts if draft[0].team == team]
            all_ = {entry.remedy.name: (entry.sum.gpu_h, cut) for entry, cut in of_team}
            tried = {names: sum(outcome.saved(i).gpu_h for i in jobs) for names, outcome in pairs.items()}
            entries += [replace(entry, overlaps=overlaps(entry.remedy.name, all_, tried)) for entry, _ in of_team]
        shown = sorted(filter(self._fits, entries), key=lambda each: (-each.rank, each.remedy.name, each.team or ""))
        together = [(entry.team or "", change) for entry in shown if entry.together for change in entry.remedy.changes]
        outcome = self._replays.under([replace(change, team=team) for team, change in together])
        before, after = outcome.figures()
        return Advice(
            entries=tuple(shown),
            groups=self._groups(shown, before.lost_gpu_h),
            base=before,
            together=after,
            of_stage=None if self._about.stage is None else self._of_stage(self._about.stage, outcome),
            weeks=self._weeks,
            error_pct=self._replays.error_pct(),
        )

    def _pairs(self, known: Mapping[str, Remedy]) -> dict[frozenset[str], Outcome]:
        """What two remedies at a time give back, where that has to be tried."""
        return {
            frozenset(names): self._replays.under([change for name in names for change in known[name].changes])
            for names in TRIED
            if all(name in known for name in names)
        }

    def _drafts(self, remedy: Remedy, outcome: Outcome) -> list[tuple[Entry, Cuts]]:
        """What a remedy gives back to each team, without what others give back, too."""
        out: list[tuple[Entry, Cuts]] = []
        touched = set(outcome.touched())
        for team, jobs in self._teams.items():
            sum_ = _sum(outcome, jobs)
            if sum_.gpu_h <= 0 or sum_.gpu_h < self._least:
                continue
            of_stage = None if self._about.stage is None else _less(outcome, jobs, self._about.stage)
            lives = [outcome.cases[i].life for i in jobs]
            before, after = outcome.figures(jobs)
            owner = self._owners.of(remedy.stage, *_common(lives))
            times = remedy.counts(self._fleet, lives)
            confidence, why = trust(remedy, times, self._replays.error_pct())
            slow = slow_hosts(self._fleet, lives) if remedy.name == "replace_stragglers" else ()
            whose = "the job" if self._about.job is not None else "the team"
            entry = Entry(
                remedy=remedy,
                title=title_of(remedy, self._fleet, lives),
                team=team,
                owner=None if owner is None else owner.team,
                contact=None if owner is None else owner.contact,
                sum=sum_,
                held_gpu_h=sum(outcome.saved(i).held_gpu_h for i in jobs),
                stage_gpu_h=of_stage,
                jobs=len(touched.intersection(jobs)),
                times=times,
                confidence=confidence,
                error_pct=remedy.error_pct,
                why=why,
                arithmetic=(*remedy.shows(self._fleet, lives), *arithmetic(sum_, self._weeks, whose)),
                before=before,
                after=after,
                overlaps=(),
                gainers=self._gainers(remedy, outcome, touched.intersection(jobs)),
                slow=slow,
                together=remedy.name not in NOT_TOGETHER,
            )
            out.append((entry, cuts(remedy, outcome, jobs)))
        return out

    def _gainers(self, remedy: Remedy, outcome: Outcome, jobs: Iterable[int]) -> tuple[Gainer, ...]:
        gains = sorted(((outcome.saved(i).gpu_h, i) for i in jobs), key=lambda each: (-each[0], each[1]))
        lives = [(gain, outcome.cases[i].life) for gain, i in gains[:_GAINERS] if gain > 0]
        return tuple(Gainer(life.job, gain, remedy.counts(self._fleet, (life,))) for gain, life in lives)

    def _fits(self, entry: Entry) -> bool:
        if self._about.owner is not None and entry.owner != (self._about.owner or None):
            return False
        return entry.stage_gpu_h is None or (entry.stage_gpu_h > 0 and entry.stage_gpu_h >= self._least)

    def _groups(self, shown: Sequence[Entry], lost: float) -> tuple[Group, ...]:
        by: defaultdict[str, list[int]] = defaultdict(list)
        for i, entry in enumerate(shown):
            by[entry.remedy.name].append(i)
        gains = {name: sum(shown[i].sum.gpu_h for i in numbers) for name, numbers in by.items()}
        out = []
        for name, numbers in by.items():
            both: defaultdict[str, float] = defaultdict(float)
            for i in numbers:
                for each in shown[i].overlaps:
                    if each.remedy.name in by:
                        both[each.remedy.name] += each.gpu_h
            of_stage = [part for i in numbers if (part := shown[i].stage_gpu_h) is not None]
            out.append(
                Group(
                    remedy=shown[numbers[0]].remedy,
                    entries=tuple(numbers),
                    gpu_h=gains[name],
                    held_gpu_h=sum(shown[i].held_gpu_h for i in numbers),
                    stage_gpu_h=sum(of_stage) if of_stage else None,
                    lost_pct=100 * gains[name] / lost if lost > 0 else None,
                    overlaps=added(both, gains[name], gains),
                )
            )
        return tuple(sorted(out, key=lambda group: (-(group.stage_gpu_h or group.gpu_h), group.remedy.name)))

    def _of_stage(self, stage: str, outcome: Outcome) -> OfStage:
        jobs = range(len(outcome.cases))
        return OfStage(stage, _spent(outcome, outcome.before, jobs, stage), _spent(outcome, outcome.after, jobs, stage))


def _spent(outcome: Outcome, side: Sequence[Replayed], jobs: Iterable[int], stage: str) -> float:
    """GPU-hours of a stage, and all under it."""
    return sum(
        outcome.cases[i].weight * side[i].summary.gpus * seconds / 3600
        for i in jobs
        for name, seconds in side[i].summary.stages.items()
        if name == stage or name.startswith(f"{stage}.")
    )


def _less(outcome: Outcome, jobs: Sequence[int], stage: str) -> float:
    return _spent(outcome, outcome.before, jobs, stage) - _spent(outcome, outcome.after, jobs, stage)


def _sum(outcome: Outcome, jobs: Sequence[int]) -> Sum:
    before, after = outcome.figures(jobs)
    gpu_h = sum(outcome.saved(i).gpu_h for i in jobs)
    less = before.lost_gpu_h - after.lost_gpu_h
    cases = [outcome.cases[i] for i in jobs]
    return Sum(
        lost_before=before.lost_gpu_h,
        lost_after=after.lost_gpu_h,
        less_lost=less,
        faster=gpu_h - less,
        gpu_h=gpu_h,
        partly=sum(case.partly for case in cases),
        scale=max(case.scale for case in cases),
    )


def _common(lives: Sequence[Life]) -> tuple[str | None, str | None]:
    """The cluster and the model, where all jobs have the same."""
    clusters = {life.cluster for life in lives}
    models = {life.model for life in lives}
    return (
        clusters.pop() if len(clusters) == 1 else None,
        models.pop() if len(models) == 1 else None,
    )
