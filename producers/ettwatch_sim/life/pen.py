"""Writes the events of one attempt: gives each its name, and knows who speaks from where."""

from typing import Any

from ettwatch_schemas import Event, PhaseEnded, PhaseStarted
from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.dice import dice
from ettwatch_sim.life.model import GPUS_A_HOST


class Pen:
    """The writer of one attempt.

    Attributes:
        attempt: What it tells of.
        ranks: The ranks that tell of their start-up, rising; rank 0 is one, and one of the slow host.
        chance: Dice for what changes no figure.
    """

    def __init__(self, attempt: Attempt, ranks: int) -> None:
        order = attempt.order
        self.attempt = attempt
        self.chance = dice(order.seed, attempt.number, "events")
        self._job = order.name
        self._count = 0
        world = order.model.gpus
        told = {0}
        if attempt.slow is not None:
            told.add(attempt.hosts.index(attempt.slow) * GPUS_A_HOST)
        while len(told) < min(ranks, world):
            told.add(self.chance.randrange(world))
        self.ranks = sorted(told)

    def write(self, kind: type[Event], ts: int, rank: int = 0, source: str = "trainer", **fields: Any) -> Event:
        """Return one event; a field that is None is left out."""
        self._count += 1
        told: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        if source != "scheduler":
            told["host"] = self.attempt.hosts[rank // GPUS_A_HOST]
        if rank:
            told["rank"] = rank
        if source != "trainer":
            told["source"] = source
        number = self.attempt.number
        return kind(id=f"{self._job}:{number}:{self._count}", job=self._job, ts=ts, attempt=number, **told)

    def span(
        self,
        phase: str,
        start: int,
        end: int | None,
        *,
        rank: int = 0,
        parent: str | None = None,
        background: bool = False,
        source: str = "trainer",
        attrs: dict[str, Any] | None = None,
        error: bool = False,
    ) -> list[Event]:
        """Return the events of a phase of one rank; without an end it stays open.

        A phase that occurs once in an attempt gives its span its name, so that its parts can tell of it.
        """
        name = span_name(phase, start)
        out = [
            self.write(
                PhaseStarted,
                start,
                rank,
                source,
                span=name,
                phase=phase,
                parent=parent,
                background=background or None,
            )
        ]
        if end is not None:
            outcome = "error" if error else None
            out.append(self.write(PhaseEnded, end, rank, source, span=name, attrs=attrs, outcome=outcome))
        return out


def span_name(phase: str, start: int) -> str:
    """Return the name of the span of a phase: phases of the loop occur again and again."""
    return f"{phase}@{start}" if phase.startswith("wasted_training") or phase.endswith(".recompile") else phase
