"""Writes the events of one job, and throws its dice."""

from random import Random
from typing import Final

from ettwatch_schemas import Event, PhaseEnded, PhaseStarted
from ettwatch_sim.shape import Shape

US: Final = 1_000_000


class Pen:
    """The events of one job so far, in the order in which they were written.

    Attributes:
        dice: The random source of this job; nothing else decides.
        odd: Whether this job does what no sound producer does.
    """

    def __init__(self, dice: Random, job: str, shape: Shape) -> None:
        self.dice = dice
        self.job = job
        self.shape = shape
        self.odd = dice.random() < shape.odd
        self.events: list[Event] = []
        self._spans = 0

    def chance(self, share: float) -> bool:
        """Throw a die that says yes in a share of all throws."""
        return self.dice.random() < share

    def oddly(self, share: float) -> bool:
        """Throw such a die in an odd job; in others it says no."""
        return self.odd and self.chance(share)

    def us(self, low_s: float, high_s: float) -> int:
        """Draw a length in microseconds between two lengths in seconds."""
        return self.dice.randint(int(low_s * US), int(high_s * US))

    def write(self, kind: type[Event], ts: int, **fields: object) -> None:
        """Write one event; a field that is None is left out."""
        told = {name: value for name, value in fields.items() if value is not None}
        self.events.append(
            kind.model_validate({"id": f"{self.job}-{len(self.events)}", "job": self.job, "ts": ts, **told})
        )

    def span(
        self,
        attempt: int,
        phase: str,
        start: int,
        end: int | None,
        *,
        rank: int = 0,
        parent: str | None = None,
        background: bool = False,
    ) -> str:
        """Write a phase of one rank, and return the name of its span; without an end it stays open."""
        self._spans += 1
        name = f"s{self._spans}"
        self.write(
            PhaseStarted,
            start,
            attempt=attempt,
            rank=rank,
            span=name,
            phase=phase,
            parent=parent,
            background=background or None,
        )
        if end is not None:
            if self.oddly(0.05):
                end = start - self.us(1, 20)
            outcome = "error" if self.chance(0.05) else "ok"
            self.write(PhaseEnded, end, attempt=attempt, rank=rank, span=name, outcome=outcome)
        return name

    def spans(self, attempt: int, phase: str, start: int, end: int, ranks: int, open_share: float = 0.04) -> None:
        """Write a phase of several ranks, which end one after the other; some stay open."""
        for rank in range(ranks):
            late = self.us(0, 3) if rank else 0
            self.span(attempt, phase, start, None if self.chance(open_share) else end + late, rank=rank)
