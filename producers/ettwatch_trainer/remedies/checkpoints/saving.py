"""What a call of `save` gives back: how long it blocked, and whether the checkpoint became durable."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass

from ettwatch_trainer.remedies.checkpoints.errors import CheckpointError
from ettwatch_trainer.remedies.checkpoints.shelf import Found


@dataclass(frozen=True, slots=True)
class Saving:
    """One save. `blocking_s` is how long the trainer was kept, `waited_s` the part of it that an earlier save took.

    `durable` gives the checkpoint when it is safe, or raises SaveError. `skipped`: nothing was saved, since an earlier
    save was still under way.
    """

    step: int
    position: int
    blocking_s: float
    waited_s: float
    skipped: bool
    durable: Future[Found]

    def ok(self, timeout_s: float | None = None) -> bool:
        """Whether the checkpoint became durable; waits for that, at most `timeout_s`."""
        return self.error(timeout_s) is None

    def error(self, timeout_s: float | None = None) -> str | None:
        """Why it is not durable; None if it is. Waits for that, at most `timeout_s`."""
        try:
            self.durable.result(timeout_s)
        except NotYet:
            return f"the checkpoint of step {self.step} was not durable after {timeout_s} s"
        except CheckpointError as error:
            return str(error)
        return None
