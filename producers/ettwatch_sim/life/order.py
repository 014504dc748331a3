"""An order: a job as it was submitted, before anything happened to it."""

from dataclasses import dataclass

from ettwatch_sim.life.model import Model
from ettwatch_sim.life.remedies import Remedy
from ettwatch_sim.life.scenario import Team


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A job as it was submitted. Times in µs.

    Attributes:
        name: Its name.
        seed: What all its dice follow from.
        team: Whose it is.
        model: What it trains.
        cluster: Where.
        submitted: When it was submitted.
        eligible: From when on it may run, where that is later (a timer).
        target: Samples to train on.
        version: Version of the team's code.
        cancel: When its owner stops it; None for never.
        remedies: What its owners have done.
    """

    name: str
    seed: int
    team: Team
    model: Model
    cluster: str
    submitted: int
    eligible: int | None
    target: int
    version: int
    cancel: int | None
    remedies: frozenset[Remedy]

    @property
    def t0(self) -> int:
        """Where its time begins."""
        return self.submitted if self.eligible is None else self.eligible
