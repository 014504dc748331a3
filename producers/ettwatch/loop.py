"""How far the training loop is: counters that the trainer's thread moves and the pulse reads."""

from time import monotonic_ns
from typing import Final, NamedTuple

NEVER: Final = 2**63
"""A monotonic time, in nanoseconds, that does not come."""


class Mark(NamedTuple):
    """Where the loop stood at one moment: samples, steps, and the monotonic time in nanoseconds."""

    position: int
    step: int
    at: int


class Loop:
    """Position, step and waits of one attempt. One thread moves it; others read whole marks."""

    __slots__ = ("due", "every_ns", "mark", "open", "reported", "reported_at", "stepped", "waited", "waiting")

    def __init__(self) -> None:
        self.mark: tuple[int, int, int] = (0, 0, 0)
        """Plain, not a Mark: it is built anew at every step."""
        self.reported: tuple[int, int, int] | None = None
        self.reported_at = 0
        self.open = False
        self.stepped = False
        """A step completed since the loop was opened."""
        self.due = 0
        """When the next step reports. 0: the very next one does."""
        self.every_ns = NEVER
        self.waited = 0
        """Nanoseconds waited for data in the loop, over all of this process."""
        self.waiting = 0
        """Since when the loop waits for data now; 0 if it does not."""

    @property
    def over(self) -> bool:
        """Whether the loop was open once and is not now."""
        return self.reported is not None and not self.open

    def begin(self, position: int | None, step: int | None, every_s: float, speaks: bool) -> Mark:
        """Open the loop at a position and step, those where it stands if None."""
        at, count, _ = self.mark
        self.mark = (at if position is None else position, count if step is None else step, monotonic_ns())
        self.reported = self.mark
        self.reported_at = self.mark[2]
        self.every_ns = int(every_s * 1e9)
        self.due = 0 if speaks else NEVER
        self.stepped = False
        self.open = True
        return Mark(*self.mark)

    def finish(self, position: int | None, step: int | None) -> Mark:
        """Close the loop; steps after it are told of by nobody."""
        self.open = False
        self.due = NEVER
        at, count, _ = self.mark
        self.mark = (at if position is None else position, count if step is None else step, monotonic_ns())
        self.reported = self.mark
        return Mark(*self.mark)

    def wait_us(self, now_ns: int) -> int:
        """Return the microseconds waited for data so far, the wait that is going on included."""
        since = self.waiting
        return (self.waited + (now_ns - since if since and now_ns > since else 0)) // 1000
