"""The recorder: what a trainer calls. Nothing here raises what is not the trainer's own, or waits for a network."""

from collections.abc import Callable, Iterable, Mapping
from time import monotonic_ns
from types import TracebackType
from typing import TypeVar

from ettwatch import compiling
from ettwatch.amounts import amount, report_every
from ettwatch.causes import cause_of, message_of
from ettwatch.checkpoint import Checkpoint, Saved
from ettwatch.clock import Clock
from ettwatch.compiling import is_compiling
from ettwatch.identity import Identity
from ettwatch.life import Life
from ettwatch.log import guarded, trouble, warn
from ettwatch.names import CAUSES, MAX_AMOUNT, OUTCOMES
from ettwatch.outbox import Outbox
from ettwatch.reporter import Reporter
from ettwatch.settings import Settings
from ettwatch.spans import Phase
from ettwatch.tracked import SizedTracked, Tracked
from ettwatch.wire import shown, tidy_text

T = TypeVar("T")


class Training:
    """What `Recorder.training` returns: the loop as a block. An exception passes on and leaves the loop open."""

    def __init__(self, begin: Callable[[], None], finish: Callable[[], None]) -> None:
        self._begin = begin
        self._finish = finish

    def __enter__(self) -> None:
        self._begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._finish()


class Recorder:
    """Tells what one process of a job does. Made by `ettwatch.init`.

    One thread moves the loop (`step`, `training_started`, …); phases and checkpoints may come from any. Every
    method returns at once and raises nothing of its own.
    """

    def __init__(self, identity: Identity, settings: Settings, clock: Clock) -> None:
        self._identity = identity
        self._settings = settings
        self._outbox = Outbox(identity, settings, clock, "trainer")
        self._reporter = Reporter(self._outbox, settings, identity.rank == 0 or settings.progress_all)
        self._loop = self._reporter.loop
        self._life = Life(self._outbox, self._reporter, settings)
        compiling.arm()

    @property
    def enabled(self) -> bool:
        """Whether anything is recorded: from `init` to the end of the attempt."""
        return not self._outbox.muted

    @property
    def job(self) -> str:
        """The job; empty where nothing is recorded."""
        return self._identity.job

    @property
    def attempt(self) -> int:
        """The number of the attempt."""
        return self._identity.attempt

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return self._identity.rank

    @property
    def dropped(self) -> dict[str, int]:
        """How many events were given up, by reason; empty where none was."""
        return self._outbox.drops

    def phase(self, name: str, *, background: bool = False, attrs: Mapping[str, object] | None = None) -> Phase:
        """Return a phase: `with rec.phase("trainer_init.read_config"):`, or a decorator.

        `name` is a component, or a dotted sub-stage of one. `background`: training does not wait for it, so it is
        drawn and never charged. `attrs`: details for people.
        """
        return Phase(self._phase_outbox, name, background, attrs)

    def _phase_outbox(self) -> Outbox | None:
        return self._outbox

    @guarded(None)
    def training_started(
        self, position: int | None = None, step: int | None = None, report_every_s: float | None = None
    ) -> None:
        """Tell that the first step begins, at `position` samples and `step` steps, as resumed (0 for a new run).

        `report_every_s`: the longest silence, in seconds, between two `progress` events; they are sent three times
        as often.
        """
        if is_compiling():
            return
        compiling.arm()
        every_s = report_every(report_every_s, self._settings.report_every_s)
        self._reporter.started(amount("position", position), amount("step", step), every_s)

    def step(self, n_samples: int = 1) -> None:
        """Count a completed step that consumed `n_samples` of the data stream, over all ranks."""
        try:
            if compiling.probe is not None and compiling.probe():
                return
            if type(n_samples) is not int or not 0 <= n_samples <= MAX_AMOUNT:
                n_samples = amount("n_samples", n_samples) or 0
            loop = self._loop
            now = monotonic_ns()
            position, step, _ = loop.mark
            loop.mark = (position + n_samples, step + 1, now)
            if now >= loop.due:
                compiling.arm()
                self._reporter.stepped(now)
        except Exception as error:
            trouble("step", error)

    def track(self, loader: Iterable[T]) -> Iterable[T]:
        """Return `loader`, to be iterated over: how long the loop waits for data is measured.

        A first batch fetched before the loop starts is the phase `trainer_init.get_first_batch_data`.
        """
        kind = SizedTracked if hasattr(type(loader), "__len__") else Tracked
        return kind(loader, self._loop, lambda: self.phase("trainer_init.get_first_batch_data"))

    @guarded(None)
    def training_ended(self, position: int | None = None, step: int | None = None) -> None:
        """Tell that the loop ended, at `position` and `step`, those counted if None."""
        if not is_compiling() and self._loop.open:
            self._reporter.ended(amount("position", position), amount("step", step))

    def training(
        self, position: int | None = None, step: int | None = None, report_every_s: float | None = None
    ) -> Training:
        """Return a block around the loop: `training_started` where it begins, `training_ended` where it ends."""
        return Training(lambda: self.training_started(position, step, report_every_s), self.training_ended)

    def checkpoint(
        self, step: int | None = None, position: int | None = None, asynchronous: bool = False
    ) -> Checkpoint:
        """Return a block around saving a checkpoint of `step` and `position`, those counted so far if None.

        The block is charged as `wasted_training.checkpoint_save`, after the loop as `shutdown.final_checkpoint`.
        When it ends rank 0 tells that the checkpoint is durable; with `asynchronous` only the call of `durable`
        on what `with` gives tells so.
        """
        if is_compiling():  # and no look at counters that rise: the graph would be made anew for each of their values
            return Checkpoint(self.phase("shutdown.final_checkpoint"), self._saved, 0, 0, 0, True)
        at, count, _ = self._loop.mark
        return Checkpoint(
            self.phase("shutdown.final_checkpoint" if self._loop.over else "wasted_training.checkpoint_save"),
            self._saved,
            at if position is None else amount("position", position) or 0,
            count if step is None else amount("step", step) or 0,
            self._outbox.clock.now(),
            asynchronous,
        )

    @guarded(None)
    def failed(self, error: BaseException | str, cause: str | None = None, exit_code: int | None = None) -> None:
        """Tell that this attempt failed, with an exception or a message, and why (a cause of the wire format).

        Without `cause` the exception's type decides; a message alone is `unknown`.
        """
        found = cause_of(error) if isinstance(error, BaseException) else "unknown"
        self._life.finish("failed", _known("cause", cause, CAUSES) or found, _text(error), exit_code)

    @guarded(None)
    def end(self, outcome: str = "succeeded", cause: str | None = None, message: str | None = None) -> None:
        """Tell that this attempt is over: succeeded, failed, preempted or cancelled. Only the first call counts."""
        self._life.finish(
            _known("outcome", outcome, OUTCOMES) or "failed",
            _known("cause", cause, CAUSES),
            None if message is None else _text(message),
        )

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.end()
        else:
            self._life.uncaught(error)

    def _saved(self, saved: Saved, asked: bool) -> None:
        if not is_compiling() and (asked or self._reporter.speaks):
            self._outbox.send(
                "checkpoint_durable",
                position=saved.position,
                step=saved.step,
                bytes=amount("bytes", saved.bytes),
                started_ts=saved.started_ts,
            )


def _known(what: str, word: str | None, words: tuple[str, ...]) -> str | None:
    if word is None or (isinstance(word, str) and word in words):
        return word
    warn(f"word:{what}", f"{shown(word)} is no {what} and is not used; there are {', '.join(words)}")
    return None


def _text(value: object) -> str | None:
    """Return a message of the trainer's; anything else than a text is never printed, it may wait for a device."""
    if isinstance(value, BaseException):
        return message_of(value)
    return (tidy_text(value) if isinstance(value, str) else f"<{type(value).__name__}>") or None
