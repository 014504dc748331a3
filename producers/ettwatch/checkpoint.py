"""A checkpoint: how long saving it blocked the trainer, and from when on a restart could load it."""

from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

from ettwatch.log import trouble
from ettwatch.spans import Phase


class Saved(NamedTuple):
    """A checkpoint that is safe: what it holds, its size, when saving it began (microseconds)."""

    position: int
    step: int
    bytes: int | None
    started_ts: int


class Checkpoint:
    """What `Recorder.checkpoint` returns. Its block is the blocking part; what the block raises passes on."""

    __slots__ = ("_asynchronous", "_phase", "_position", "_started_ts", "_step", "_tell", "_told")

    def __init__(
        self, phase: Phase, tell: Callable[[Saved, bool], None], position: int, step: int, ts: int, asynchronous: bool
    ) -> None:
        self._phase = phase
        self._tell = tell
        self._position = position
        self._step = step
        self._started_ts = ts
        self._asynchronous = asynchronous
        self._told = False

    def __enter__(self) -> "Checkpoint":
        self._phase.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._phase.__exit__(kind, error, traceback)
        if error is None and not self._asynchronous:
            self._durable(None, asked=False)

    def durable(self, bytes: int | None = None) -> None:
        """Tell that a restart can load this checkpoint now, of `bytes` bytes. From any thread; once."""
        self._durable(bytes, asked=True)

    def _durable(self, size: int | None, asked: bool) -> None:
        try:
            if not self._told:
                self._told = True
                self._tell(Saved(self._position, self._step, size, self._started_ts), asked)
        except Exception as error:
            trouble("checkpoint", error)
