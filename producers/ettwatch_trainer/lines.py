"""What the trainer says on stdout: short lines for people, from rank 0, about one a second."""

from __future__ import annotations

import time
from collections.abc import Callable

EVERY_S = 1.0


class Lines:
    """Prints `attempt 0  step 120/320  loss 0.512  31,400 samples/s`; silent on every rank but 0."""

    def __init__(self, *, attempt: int, steps: int, silent: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._attempt, self._steps, self._silent, self._clock = attempt, steps, silent, clock
        self._last, self._samples = clock(), 0

    def say(self, text: str) -> None:
        """Print one line now."""
        if not self._silent:
            print(f"attempt {self._attempt}  {text}", flush=True)

    def step(self, step: int, loss: float, samples: int) -> None:
        """One step of `samples` is done; printed if the last such line is a second old, or if it is the last."""
        self._samples += samples
        now = self._clock()
        passed = now - self._last
        if passed < EVERY_S and step != self._steps:
            return
        self.say(f"step {step}/{self._steps}  loss {loss:.3f}  {self._samples / max(passed, 1e-6):,.0f} samples/s")
        self._last, self._samples = now, 0
