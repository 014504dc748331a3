"""The recorder that records nothing: before `init`, where recording is switched off, where it cannot be right."""

from collections.abc import Iterable
from typing import TypeVar

from ettwatch.clock import Clock
from ettwatch.identity import Identity
from ettwatch.recorder import Recorder
from ettwatch.settings import read

T = TypeVar("T")


class NoRecorder(Recorder):
    """Takes every call of a `Recorder`, writes nothing, starts no thread, touches no file."""

    def __init__(self) -> None:
        super().__init__(Identity("", 0, 0, ""), read({"ETTWATCH_DISABLED": "1"}), Clock())
        self._outbox.mute()

    def _phase_outbox(self) -> None:
        """Return None: phases are not told of."""

    def training_started(
        self, position: int | None = None, step: int | None = None, report_every_s: float | None = None
    ) -> None:
        """Do nothing."""

    def step(self, n_samples: int = 1) -> None:
        """Do nothing."""

    def track(self, loader: Iterable[T]) -> Iterable[T]:
        """Return `loader` itself."""
        return loader

    def training_ended(self, position: int | None = None, step: int | None = None) -> None:
        """Do nothing."""

    def failed(self, error: BaseException | str, cause: str | None = None, exit_code: int | None = None) -> None:
        """Do nothing."""

    def end(self, outcome: str = "succeeded", cause: str | None = None, message: str | None = None) -> None:
        """Do nothing."""

    def __exit__(self, *what: object) -> None:
        """Do nothing; what the block raised passes on."""

    def _saved(self, saved: object, asked: bool) -> None:
        """Do nothing."""
