"""The recorder of a process whose code does not know of it: moved by the hooks until somebody moves it by hand."""

from collections.abc import Iterable
from time import monotonic_ns
from typing import TypeVar

from ettwatch.log import guarded
from ettwatch.names import MAX_AMOUNT
from ettwatch.recorder import Recorder

T = TypeVar("T")


class AutoRecorder(Recorder):
    """A recorder that knows whether the trainer itself tells of the loop. Then the hooks leave the loop alone."""

    by_hand = False

    def training_started(
        self, position: int | None = None, step: int | None = None, report_every_s: float | None = None
    ) -> None:
        """As `Recorder.training_started`: from here on the trainer speaks for the loop."""
        self.by_hand = True
        super().training_started(position, step, report_every_s)

    def step(self, n_samples: int = 1) -> None:
        """As `Recorder.step`."""
        self.by_hand = True
        super().step(n_samples)

    def track(self, loader: Iterable[T]) -> Iterable[T]:
        """As `Recorder.track`."""
        self.by_hand = True
        return super().track(loader)

    @guarded(None)
    def open_loop(self, position: int, at_ns: int) -> None:
        """Tell that the loop began, at `position` steps and at a monotonic time that has passed."""
        every_s = self._settings.report_every_s
        reporter = self._reporter
        reporter.loop.begin(position, position, every_s / 3, reporter.speaks)
        reporter.loop.mark = reporter.loop.reported = (position, position, at_ns)
        if reporter.speaks:
            outbox = self._outbox
            outbox.send(
                "training_started", outbox.clock.at(at_ns), position=position, step=position, report_every_s=every_s
            )
            reporter.wake()

    def advance(self) -> None:
        """Count a step. For the loop that `open_loop` opened; its caller guards it."""
        loop = self._loop
        now = monotonic_ns()
        position, step, _ = loop.mark
        if position < MAX_AMOUNT:
            loop.mark = (position + 1, step + 1, now)
        if now >= loop.due:
            self._reporter.stepped(now)
