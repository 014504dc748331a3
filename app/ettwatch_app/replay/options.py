"""What a replay may be told, and what it says about itself."""

from dataclasses import dataclass, field
from typing import Protocol

from ettwatch_core import Rules


class Meter(Protocol):
    """Is told how far a replay is."""

    def begin(self, what: str, total: int | None) -> None:
        """Start a part of the work of `total` units (None: not known)."""

    def advance(self, units: int) -> None:
        """Tell that `units` more are done."""


class Silent:
    """A meter that shows nothing."""

    def begin(self, what: str, total: int | None) -> None:
        """Do nothing."""

    def advance(self, units: int) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a replay.

    Attributes:
        rules: Settings of the attribution rules. With `rules.lateness` set the input is read once, in its own
            order, and jobs that are over are dropped on the way; with None no event is too late.
        now: The clock, in microseconds; None: for each job its newest event.
        segments: Add the segments to each summary.
        definition: `ett`, or `goodput`: then each line is the job's goodput instead of its summary.
        memory: About how many bytes of lines are held before a temporary file takes them.
        meter: Is told of progress.
    """

    rules: Rules = field(default_factory=lambda: Rules(lateness=None))
    now: int | None = None
    segments: bool = False
    definition: str = "ett"
    memory: int = 64 << 20
    meter: Meter = field(default_factory=Silent)
