"""What is kept of the settled part of a job, in place of its events."""

from dataclasses import dataclass, field

from ettwatch_core.attempts import FixedStart
from ettwatch_core.gaps import Spent
from ettwatch_core.loop import LoopMark
from ettwatch_core.ranges import Ranges
from ettwatch_core.records import Record
from ettwatch_core.tally import Tally
from ettwatch_schemas import AttemptSummary, Segment

__all__ = ["Carry", "Unresolved"]


@dataclass(slots=True)
class Unresolved:
    """A settled attempt that failed, while it is not known yet from which position the job went on."""

    summary: AttemptSummary
    spent: list[Spent]


@dataclass(slots=True)
class Carry:
    """Everything up to ``until`` is final; this is all of it that later events need."""

    until: int
    t0: int
    fixed: FixedStart
    """The attempt in which ``until`` lies."""
    submit: Record | None
    told_floor: int | None
    """Latest told start of an attempt so far (µs)."""
    passed: Ranges
    tally: Tally
    current: Tally
    """The share of the attempt that goes on."""
    partial: list[Segment]
    """Segments of the cell in which ``until`` lies, up to there."""
    attempts: int
    """Attempts begun, the one that goes on included."""
    interruption: int | None
    """Where the recovery that leads to this attempt began; ``None`` for the first attempt (µs)."""
    tts: int | None = None
    ttr: list[int] = field(default_factory=list)
    recovery: int = 0
    nof: int = 0
    nof_infra: int = 0
    nof_preempted: int = 0
    unsaved: int = 0
    durables: list[tuple[int, int]] = field(default_factory=list)
    """Time and position of the newest durable checkpoints of the job."""
    numbers: Ranges = field(default_factory=Ranges)
    """Numbers of the attempts that are over."""
    default_gpus: bool = False
    """An attempt did not tell its GPUs, so the job's were taken."""
    mark: LoopMark | None = None
    """Where the loop of the attempt stands; ``None`` if ``until`` is its start."""
    spent: list[Spent] = field(default_factory=list)
    """In-loop time of the attempt by position."""
    flags: set[str] = field(default_factory=set)
    current_flags: set[str] = field(default_factory=set)
    unresolved: list[Unresolved] = field(default_factory=list)
