"""A running job as the policy sees it: what it holds, what it would lose, what it would need to come back."""

import math
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Running", "RunningError", "State"]

State = Literal["starting", "training", "ending"]
"""Of an attempt that holds its GPUs: before its first batch, in its loop, or after that (last save, publishing)."""


class RunningError(ValueError):
    """A job, or a question, that makes no sense. One line that says what is wrong, and of which job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An attempt that holds GPUs now.

    Times are microseconds since the Unix epoch; what ends in `_s` is seconds of wall time. Raises RunningError where a
    value makes no sense.

    Attributes:
        job: Its name.
        gpus: How many GPUs it holds, at least 1; preempting it frees them all.
        state: What it does.
        started_us: When it got its hardware.
        seen_us: Up to when its work is in `unsaved_s`. What came after is taken for work that no checkpoint holds.
        unsaved_s: Training above its newest durable position up to `seen_us`; of an attempt that is ending with what it
            did after its loop. 0 while it starts.
        recovery_s: Its expected time to recover: from a preemption to the first batch of the next attempt. None where
            nobody knows.
        startup_s: How long its start-up is expected to take, from its hardware to the first batch. None where nobody
            knows.
        saved_us: When its newest checkpoint became durable; None where none is known.
        interval_s: Time between its checkpoints as measured, from durable to durable; None where it was not.
        lag_s: How long a checkpoint of it takes to become durable, from the begin of the save; None where it was not
            told.
        team, model, cluster: Whose it is, and where; empty where nobody told.
        attempt: Number of the attempt.
        notes: What is not known of it, for people.
    """

    job: str
    gpus: int
    state: State = "training"
    started_us: int
    seen_us: int
    unsaved_s: float = 0.0
    recovery_s: float | None = None
    startup_s: float | None = None
    saved_us: int | None = None
    interval_s: float | None = None
    lag_s: float | None = None
    team: str = ""
    model: str = ""
    cluster: str = ""
    attempt: int = 0
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.job:
            raise RunningError("a job without a name; give it one")
        if isinstance(self.gpus, bool) or not isinstance(self.gpus, int) or not 1 <= self.gpus <= 2**31:
            raise RunningError(f"job {self.job!r}: gpus is {self.gpus!r}; give a whole number of at least 1")
        if self.state not in ("starting", "training", "ending"):
            raise RunningError(f"job {self.job!r}: state is {self.state!r}; give starting, training or ending")
        for name in ("unsaved_s", "recovery_s", "startup_s", "interval_s", "lag_s"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and 0 <= value <= _LONGEST_S):
                raise RunningError(f"job {self.job!r}: {name} is {value!r}; give seconds, 0 to {_LONGEST_S:,.0f}")


_LONGEST_S = 10 * 366 * 86_400.0
"""Ten years."""
