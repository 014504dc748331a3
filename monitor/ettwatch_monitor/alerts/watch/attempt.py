"""An attempt as the tables tell it: what all streams are made of."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["AttemptFact"]


@dataclass(frozen=True, slots=True)
class AttemptFact:
    """One attempt of a job. Times are microseconds since the epoch; what ends in `_s`, and stages, are seconds.

    Attributes:
        job: The job.
        number: Of the attempt, from 0.
        team: Whose job; empty where nobody said so, as `model` and `cluster`.
        model: What it trains.
        cluster: Where.
        gpus: By which it weighs.
        start: Its begin.
        end: Its end, or when it was last heard of.
        open: It has not ended.
        outcome: How it ended; empty while it is open.
        cause: Why it did not succeed.
        first_batch: When start-up was over; None where it never was.
        tts_s: Time to start.
        ttr_s: Time to recover.
        stages: Seconds by stage.
    """

    job: str
    number: int
    team: str
    model: str
    cluster: str
    gpus: int
    start: int
    end: int
    open: bool
    outcome: str
    cause: str
    first_batch: int | None
    tts_s: float | None
    ttr_s: float | None
    stages: Mapping[str, float]

    @property
    def id(self) -> str:
        """Its name: job and number."""
        return f"{self.job}/{self.number}"

    @property
    def failed(self) -> bool:
        """Whether it failed or was preempted."""
        return self.outcome in ("failed", "preempted")
