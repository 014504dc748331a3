"""Trying again: pauses that grow, with chance in them, for as long as patience lasts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ettwatch_clickhouse.errors import StoreUnavailable

__all__ = ["Retry", "Retrying"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retry:
    """How to wait for a ClickHouse that is away. All in seconds.

    Attributes:
        first_s: The first pause, at most.
        most_s: The longest pause, at most; each pause is twice the one before.
        patience_s: After this long the error is raised; what was not written is kept.
    """

    first_s: float = 0.2
    most_s: float = 10.0
    patience_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Retrying:
    """Runs steps that are safe to repeat.

    Attributes:
        policy: How to wait.
        clock: The time in seconds.
        sleep: Waits for some seconds.
        chance: A number from 0 to 1, another one each time: many writers must not come back at once.
    """

    policy: Retry
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    chance: Callable[[], float]

    def run(self, step: Callable[[], T]) -> T:
        """Run a step until it succeeds.

        Raises:
            StoreUnavailable: Patience is over.
            StoreError: Trying again would not help.
        """
        begun = self.clock()
        pause = self.policy.first_s
        while True:
            try:
                return step()
            except StoreUnavailable:
                wait = pause * (0.5 + self.chance() / 2)
                if self.clock() + wait - begun > self.policy.patience_s:
                    raise
                self.sleep(wait)
                pause = min(2 * pause, self.policy.most_s)
