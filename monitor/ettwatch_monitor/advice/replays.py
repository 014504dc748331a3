"""What if: a fleet is laid out anew under changes, and compared with the same fleet laid out without any."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ettwatch_monitor.advice.change import Change
from ettwatch_monitor.advice.figures import Figures, figures
from ettwatch_monitor.advice.fleet import Case, Fleet, Replayed
from ettwatch_schemas import JobSummary

_OFF: Final = 0.02
"""A job that is laid out anew by so much of its time wrongly, without any change, is left alone."""


class Saved(NamedTuple):
    """What a change gives back in one job, in GPU-hours: of all, and of those held. Weighted."""

    gpu_h: float
    held_gpu_h: float


@dataclass(slots=True)
class Outcome:
    """A fleet before and after.

    Attributes:
        cases: Its jobs.
        before, after: What the rules say of each, in the same order.
    """

    cases: Sequence[Case]
    before: Sequence[Replayed]
    after: Sequence[Replayed]

    def saved(self, i: int) -> Saved:
        """What a job gets back. The same work is compared: what it would leave undone is still to be paid."""
        before, after, weight = self.before[i].summary, self.after[i].summary, self.cases[i].weight
        owed = before.gpu_effective_s * (self.after[i].undone - self.before[i].undone)
        return Saved(
            weight * (before.gpu_e2e_s - after.gpu_e2e_s - owed) / 3600,
            weight * (before.gpu_held_s - after.gpu_held_s - owed) / 3600,
        )

    def touched(self) -> list[int]:
        """The jobs that it makes a difference to."""
        return [i for i in range(len(self.cases)) if self.before[i] is not self.after[i]]

    def figures(self, jobs: Sequence[int] | None = None) -> tuple[Figures, Figures]:
        """Figures of all jobs, or of some, before and after."""
        chosen = range(len(self.cases)) if jobs is None else jobs
        return (
            figures((self.before[i].summary, self.cases[i].weight) for i in chosen),
            figures((self.after[i].summary, self.cases[i].weight) for i in chosen),
        )

    def by_team(self) -> dict[str, Saved]:
        """What each team gets back."""
        sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for i in self.touched():
            saved, team = self.saved(i), self.cases[i].life.team or ""
            sums[team][0] += saved.gpu_h
            sums[team][1] += saved.held_gpu_h
        return {team: Saved(*both) for team, both in sums.items()}


@dataclass
class Replays:
    """A fleet that is laid out anew again and again.

    Attributes:
        fleet: As it was observed.
        jobs: Names of those that are laid out; None: all. What the others tell of their kind is used all the same.
    """

    fleet: Fleet
    jobs: frozenset[str] | None = None
    cases: list[Case] = field(init=False)
    """Those jobs."""
    plain: list[Replayed] = field(init=False)
    """What the rules say of each job, laid out without a change."""
    fixed: frozenset[int] = field(init=False)
    """Jobs that cannot be laid out anew (their events contradict each other): changes leave them as they are."""

    def __post_init__(self) -> None:
        self.cases = [case for case in self.fleet.cases if self.jobs is None or case.life.job in self.jobs]
        plain = [self.fleet.replay(case, ()) for case in self.cases]
        pairs = enumerate(zip(self.cases, plain, strict=True))
        self.fixed = frozenset(i for i, (case, made) in pairs if _is_off(case.summary, made.summary))
        self.plain = [
            Replayed(case.summary, 0.0) if i in self.fixed else made
            for i, (case, made) in enumerate(zip(self.cases, plain, strict=True))
        ]

    def error_pct(self) -> float:
        """By how many percent of the lost GPU time laying out itself is wrong."""
        seen = sum(c.weight * (c.summary.gpu_e2e_s - c.summary.gpu_effective_s) for c in self.cases)
        off = sum(
            c.weight * abs(c.summary.gpu_e2e_s - c.summary.gpu_effective_s - s.gpu_e2e_s + s.gpu_effective_s)
            for c, (s, _) in zip(self.cases, self.plain, strict=True)
        )
        return 100 * off / seen if seen else 0.0

    def under(self, changes: Sequence[Change]) -> Outcome:
        """Lay the fleet out under changes; jobs that none of them is of stay as they are."""
        after = []
        for i, (case, plain) in enumerate(zip(self.cases, self.plain, strict=True)):
            concerned = i not in self.fixed and any(change.of(case.life) for change in changes)
            after.append(self.fleet.replay(case, changes) if concerned else plain)
        for i, (new, plain) in enumerate(zip(after, self.plain, strict=True)):
            if new == plain:
                after[i] = plain
        return Outcome(self.cases, self.plain, after)


def _is_off(was: JobSummary, made: JobSummary) -> bool:
    most = _OFF * max(1.0, was.e2e_s)
    return abs(was.e2e_s - made.e2e_s) > most or abs(was.effective_s - made.effective_s) > most
