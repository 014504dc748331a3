"""A handler for torchtitan's structured logger; TITAN_STRUCT_LOGGER_HANDLERS names `register` of this module."""

import logging
from time import monotonic_ns
from typing import Any, Final

import ettwatch
from ettwatch.log import trouble, warn
from ettwatch.names import slug
from ettwatch.past import tell_past
from ettwatch.recorder import Recorder
from ettwatch.spans import Span

PHASES: Final = {
    "torch_distributed_init": "trainer_init.process_group_init",
    "model_parallelism_init": "trainer_init.train_module_creation",
    "checkpoint_load": "trainer_init.checkpoint_load",
    "eval": "wasted_training.evaluation",
    "torch_distributed_teardown": "shutdown.teardown",
}
"""torchtitan's name of a span to the phase that it is."""
SAVE: Final = "checkpoint_save"
SHORTEST_SAVE_NS: Final = 10_000_000
"""torchtitan asks at each step whether to save: an answer within this is no."""
_SOURCES: Final = ("training", "trainer")


class EttwatchHandler(logging.Handler):
    """Makes phases, steps and waits out of the records of torchtitan's spans. Positions are steps."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._open: list[tuple[str, Span]] = []
        self._save_ns = 0
        self._step_failed = False
        """An error of the step that is being done was told; its end is told all the same."""

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record. Raises nothing."""
        try:
            name = getattr(record, "log_type_name", None)
            if not isinstance(name, str) or getattr(record, "log_type", None) != "event":
                return
            span, _, what = name.rpartition("_")
            step = getattr(record, "step", None)
            if what == "start":
                self._started(span, step if isinstance(step, int) else None)
            elif what in ("end", "error"):
                self._ended(span, what)
        except Exception as error:
            trouble("a record of torchtitan", error)

    def _started(self, name: str, step: int | None) -> None:
        loop = self._recorder._loop
        if name == "fetching_batch":
            if loop.open:
                loop.waiting = monotonic_ns()
            else:
                self._begin(name, "trainer_init.get_first_batch_data")
        elif name in ("fwd_bwd", "post_dataloading_process") and not loop.open:
            begun = max((step or 1) - 1, 0)
            self._recorder.training_started(position=begun, step=begun)
        elif name == SAVE:
            self._save_ns = monotonic_ns()
        elif name in PHASES:
            self._begin(name, PHASES[name])
        elif not loop.open and name not in ("step", "optim"):
            self._begin(name, f"trainer_init.{slug(name, 60).replace('-', '_').lower()}")

    def _ended(self, name: str, what: str) -> None:
        loop = self._recorder._loop
        if name == "fetching_batch" and loop.waiting:
            since, loop.waiting = loop.waiting, 0
            loop.waited += monotonic_ns() - since
        elif name == "optim":
            self._step_ended(what)
        elif name == SAVE and what == "end":
            self._saved()
        elif any(name == opened for opened, _ in self._open):
            error = RuntimeError() if what == "error" else None
            while self._open:
                opened, span = self._open.pop()
                span.leave()
                span.end(error)
                if opened == name:
                    return

    def _step_ended(self, what: str) -> None:
        failed, self._step_failed = self._step_failed, what == "error"
        if what == "end" and not failed:
            self._recorder.step(1)

    def _begin(self, name: str, phase: str) -> None:
        span = self._recorder.phase(phase).begin()
        span.enter()
        self._open.append((name, span))

    def _saved(self) -> None:
        now = monotonic_ns()
        since, self._save_ns = self._save_ns, 0
        if not since or now - since < SHORTEST_SAVE_NS:
            return
        phase = "wasted_training.checkpoint_save" if self._recorder._loop.open else "trainer_init.checkpoint_save"
        tell_past(self._recorder, phase, since, now)


def register(*, structured_logger: logging.Logger, rank: int, source: str, output_dir: str, **more: Any) -> None:
    """Attach the handler, as torchtitan asks of those that its environment variable names."""
    if source not in _SOURCES:
        warn("torchtitan", f"structured logs of {source!r} are not those of a training and are not recorded")
        return
    recorder = ettwatch.get() if ettwatch.get().enabled else ettwatch.init(rank=rank)
    if recorder.enabled:
        structured_logger.addHandler(EttwatchHandler(recorder))
