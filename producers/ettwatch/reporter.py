"""What is told of the loop, and when: its start, progress every few seconds, its end, signs of life."""

import os
from time import monotonic, monotonic_ns

from ettwatch.log import trouble, warn
from ettwatch.loop import NEVER, Loop
from ettwatch.moving import Place, leave_place
from ettwatch.outbox import Outbox
from ettwatch.pulse import Pulse
from ettwatch.settings import Settings


class Reporter:
    """Speaks for the loop of a rank that is to be heard; that of any other rank says nothing."""

    def __init__(self, outbox: Outbox, settings: Settings, speaks: bool) -> None:
        self.loop = Loop()
        self.loop.due = 0 if speaks else NEVER
        self.speaks = speaks
        self._outbox = outbox
        self._settings = settings
        self._pulse: Pulse | None = None
        self._pulse_pid = 0

    def wake(self) -> None:
        """Start the pulse, in whichever process this is."""
        if self.speaks:
            every_s = self.loop.every_ns / 1e9 if self.loop.open else self._settings.heartbeat_every_s / 2
            if self._pulse is not None and self._pulse_pid == os.getpid():
                self._pulse.hurry(every_s)
                return
            pulse = Pulse(self._beat, every_s)
            try:
                pulse.start()
            except RuntimeError as error:  # no more threads, or the interpreter ends: what is told is told all the same
                trouble("starting the thread that tells that the trainer lives", error)
                return
            self._pulse, self._pulse_pid = pulse, os.getpid()

    def stop(self) -> None:
        """End the pulse."""
        if self._pulse is not None and self._pulse_pid == os.getpid():
            self._pulse.stop()

    def started(self, position: int | None, step: int | None, report_every_s: float) -> None:
        """Open the loop and tell so. Progress goes out three times as often as is promised."""
        mark = self.loop.begin(position, step, report_every_s / 3, self.speaks)
        if self.speaks:
            self._outbox.send(
                "training_started",
                self._outbox.clock.at(mark.at),
                position=mark.position,
                step=mark.step,
                report_every_s=report_every_s,
            )
            self.wake()

    def stepped(self, now_ns: int) -> None:
        """Report the step that completed at `now_ns` (monotonic nanoseconds), which was due."""
        loop = self.loop
        if not loop.open:
            loop.due = NEVER
            if loop.reported is not None:  # the loop has ended
                return
            warn("step", "step() before training_started(): where the loop started from is not known")
            mark = loop.mark
            loop.begin(None, None, self._settings.report_every_s / 3, self.speaks)
            loop.mark = mark
            self.wake()
        loop.stepped = True
        loop.due = now_ns + loop.every_ns
        self._tell(loop.mark, now_ns)

    def catch_up(self) -> None:
        """Report the last step, at its own time, if it has not been reported."""
        mark = self.loop.mark
        if self.speaks and self.loop.open and mark is not self.loop.reported:
            self._tell(mark, mark[2])

    def ended(self, position: int | None, step: int | None) -> None:
        """Close the loop and tell so."""
        self.catch_up()
        mark = self.loop.finish(position, step)
        if self.speaks:
            self._outbox.send(
                "training_ended",
                self._outbox.clock.at(mark.at),
                position=mark.position,
                step=mark.step,
                data_wait_us=self.loop.wait_us(mark.at),
            )
            self._leave_word("ended", mark)

    def _tell(self, mark: tuple[int, int, int], at_ns: int) -> None:
        loop = self.loop
        loop.reported, loop.reported_at = mark, monotonic_ns()
        self._outbox.send(
            "progress",
            self._outbox.clock.at(at_ns),
            position=mark[0],
            step=mark[1],
            data_wait_us=loop.wait_us(at_ns),
        )
        self._leave_word("training", mark)

    def _leave_word(self, state: str, mark: tuple[int, int, int]) -> None:
        who = self._outbox.identity
        leave_place(who.run_dir, who.attempt, who.rank, Place(state, mark[0], mark[1]))

    def _beat(self) -> float:
        """Speak if the trainer has been silent for too long; return the seconds until the next look."""
        self._outbox.retry()
        loop = self.loop
        if not loop.open:
            every_s = self._settings.heartbeat_every_s
            if monotonic() - self._outbox.last_sent >= every_s / 2:
                self._outbox.send("heartbeat")
            return every_s / 2
        # A step that is a little late reports itself: half an interval more, of the three that are promised.
        if monotonic_ns() - loop.reported_at >= 1.5 * loop.every_ns:
            mark = loop.mark
            if mark is not loop.reported:
                self._tell(mark, mark[2])
            elif loop.stepped:
                self._tell(mark, monotonic_ns())
            else:  # the first progress is that of the first step
                loop.reported_at = monotonic_ns()
                self._outbox.send("heartbeat")
        return loop.every_ns / 1e9
