"""Waits for data of a loop that somebody else runs: the time between two steps that nothing else explains."""

from time import monotonic_ns

from ettwatch.recorder import Recorder
from ettwatch.spans import Span


class Gaps:
    """Phases between steps, and what is left of the time between them. For the thread that trains."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._since_ns = 0
        self._open: list[Span] = []

    def begin(self, phase: str) -> None:
        """A phase begins, inside the one that is open, if any."""
        self._count()
        span = self.recorder.phase(phase).begin()
        span.enter()
        self._open.append(span)

    def end(self, phase: str, error: BaseException | None = None) -> None:
        """The phase ends, and with it those in it that were left open; nothing if it is not open."""
        if any(span.phase == phase for span in self._open):
            while self._open:
                span = self._open.pop()
                span.leave()
                span.end(error)
                if span.phase == phase:
                    break
            if not self._open:
                self._since_ns = monotonic_ns()

    def step_ends(self) -> None:
        """From here on the loop waits for its next batch."""
        self._since_ns = monotonic_ns()

    def step_begins(self) -> None:
        """The batch is there. Phases that were left open are over."""
        if self._open:
            self.end(self._open[0].phase)
        self._count()

    def _count(self) -> None:
        since, self._since_ns = self._since_ns, 0
        loop = self.recorder._loop
        if since and loop.open:
            loop.waited += monotonic_ns() - since
