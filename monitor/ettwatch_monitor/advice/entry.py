"""What advice says: of a remedy for a team, of a remedy for all, and of all of them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ettwatch_monitor.advice.evidence import Slow
from ettwatch_monitor.advice.figures import Figures
from ettwatch_monitor.advice.remedies import Confidence, Remedy


class Sum(NamedTuple):
    """How a gain comes about, in GPU-hours of the range: `less_lost` + `faster` = `gpu_h`.

    Attributes:
        lost_before, lost_after: What is lost, of the same jobs.
        less_lost: The difference.
        faster: By how much the same training takes fewer effective GPU-hours: where no step waits for a slow host.
        gpu_h: What comes back.
        partly: Jobs of which a part lies outside the range: they count by their share inside.
        scale: How many times the jobs that were looked at count, as they stand for others; 1 where all were.
    """

    lost_before: float
    lost_after: float
    less_lost: float
    faster: float
    gpu_h: float
    partly: int
    scale: float

    @property
    def lost_pct(self) -> float | None:
        """What comes back in percent of what is lost."""
        return 100 * self.gpu_h / self.lost_before if self.lost_before > 0 else None


class Overlap(NamedTuple):
    """Time that another remedy would give back, too.

    Attributes:
        remedy: That other one.
        how: `contained`: nearly all of this is in the other; `contains`: nearly all of the other is in this;
            `overlaps`: a part.
        gpu_h: GPU-hours that both would give back.
    """

    remedy: Remedy
    how: Literal["contained", "contains", "overlaps"]
    gpu_h: float


class Gainer(NamedTuple):
    """A job that gains: GPU-hours in the range, and how often what a remedy cures was seen in it."""

    job: str
    gpu_h: float
    times: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What a remedy would give back to a team.

    Attributes:
        remedy: What can be done.
        title: The same in words, with numbers of the team where there are any.
        team: Whose jobs they are; None for jobs that name none.
        owner, contact: Who can do it; None where nobody owns the stage.
        sum: What comes back, and how that is made up.
        held_gpu_h: Of what comes back, what was held: without waits for hardware.
        stage_gpu_h: What comes back of the stage that was asked for; None where none was.
        jobs: Jobs that it makes a difference to, of those looked at.
        times: How often what it cures was seen.
        confidence, error_pct, why: How far to trust it.
        arithmetic: What was counted, and the sum.
        before, after: Figures of the team.
        overlaps: Remedies that would give back some of the same, the most first.
        gainers: Jobs that gain most.
        slow: The hosts that keep others waiting, for the remedy that takes them out.
        together: Whether it is counted where all remedies are taken together.
    """

    remedy: Remedy
    title: str
    team: str | None
    owner: str | None
    contact: str | None
    sum: Sum
    held_gpu_h: float
    stage_gpu_h: float | None
    jobs: int
    times: int
    confidence: Confidence
    error_pct: float | None
    why: str
    arithmetic: tuple[str, ...]
    before: Figures
    after: Figures
    overlaps: tuple[Overlap, ...]
    gainers: tuple[Gainer, ...]
    slow: tuple[Slow, ...]
    together: bool

    @property
    def rank(self) -> float:
        """By what it is sorted: what comes back of the stage that was asked for, else all that comes back."""
        return self.sum.gpu_h if self.stage_gpu_h is None else self.stage_gpu_h


@dataclass(frozen=True, slots=True)
class Group:
    """A remedy for all teams. GPU-hours are those of the range.

    Attributes:
        remedy: What can be done.
        entries: Numbers of its entries in the advice, the most first.
        lost_pct: What comes back in percent of what all jobs that were looked at lost.
        overlaps: As of an entry, added up.
    """

    remedy: Remedy
    entries: tuple[int, ...]
    gpu_h: float
    held_gpu_h: float
    stage_gpu_h: float | None
    lost_pct: float | None
    overlaps: tuple[Overlap, ...]


@dataclass(frozen=True, slots=True)
class OfStage:
    """A stage: what it takes (GPU-hours of the range) as it was, and with all that is shown."""

    stage: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for a fleet.

    Attributes:
        entries: What would give back most, first.
        groups: The same by remedy, what would give back most first.
        base: The fleet as it was.
        together: With all that is shown at a time (without what is part of another, or doubtful).
        of_stage: The stage that was asked for; None where none was.
        weeks: How long the time is that was looked at.
        error_pct: By how much laying out anew is off by itself.
    """

    entries: tuple[Entry, ...]
    groups: tuple[Group, ...]
    base: Figures
    together: Figures
    of_stage: OfStage | None
    weeks: float
    error_pct: float
