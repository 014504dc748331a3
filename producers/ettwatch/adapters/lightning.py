"""A callback for Lightning: `Trainer(callbacks=[EttwatchCallback()])`, of `lightning` and of `pytorch_lightning`."""

import sys
from collections.abc import Callable
from typing import Any

import ettwatch
from ettwatch.adapters.gaps import Gaps
from ettwatch.log import guarded, trouble


def _callback() -> Any:
    """Return the class to derive from: that of the Lightning which is there, of two the one that was imported."""
    names = ("lightning.pytorch", "pytorch_lightning")
    for name in names:
        if name in sys.modules:
            return sys.modules[name].Callback
    from importlib import import_module

    try:
        return import_module(names[0]).Callback
    except ModuleNotFoundError:
        return import_module(names[1]).Callback


def batch_size(batch: Any) -> int:
    """Return the number of samples of a batch: the length of the first tensor in it; 1 if there is none."""
    left = [batch]
    while left:
        item = left.pop(0)
        shape = getattr(item, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) else 1
        if isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, (list, tuple)):
            left.extend(item)
    return 1


class EttwatchCallback(_callback()):  # type: ignore[misc]
    """Tells of first batch, steps, waits, validations and checkpoints.

    `samples(batch)` is the number of samples of one rank's batch. The position is part of Lightning's checkpoints, so
    a resumed run goes on from it.
    """

    def __init__(self, samples: Callable[[Any], int] = batch_size) -> None:
        self._samples = samples
        self._gaps: Gaps | None = None
        self._position = 0
        self._step = 0

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin to record, and take note of checkpoints, whoever asks for them."""
        if stage == "fit":
            self._set_up(trainer)

    @guarded(None)
    def _set_up(self, trainer: Any) -> None:
        recorder = ettwatch.get() if ettwatch.get().enabled else ettwatch.init()
        self._gaps = Gaps(recorder)
        save = trainer.save_checkpoint

        def save_checkpoint(*args: Any, **kwargs: Any) -> Any:
            name = "wasted_training.checkpoint_save" if recorder._loop.open else "shutdown.final_checkpoint"
            self._begin(name)
            try:
                result = save(*args, **kwargs)
            finally:
                self._end(name)
            self._saved()
            return result

        if not hasattr(save, "_ettwatch"):
            save_checkpoint._ettwatch = True  # type: ignore[attr-defined]
            trainer.save_checkpoint = save_checkpoint

    def _begin(self, phase: str) -> None:
        if self._gaps is not None:
            self._gaps.begin(phase)

    def _end(self, phase: str) -> None:
        if self._gaps is not None:
            self._gaps.end(phase)

    @guarded(None)
    def _saved(self) -> None:
        if self._gaps is not None and self._gaps.recorder.rank == 0:
            checkpoint = self._gaps.recorder.checkpoint(step=self._step, position=self._position, asynchronous=True)
            checkpoint.durable()

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        """Validation is tried before training."""
        self._begin("trainer_init.sanity_check")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        """That is over."""
        self._end("trainer_init.sanity_check")

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Everything is there but the first batch."""
        self._begin("trainer_init.get_first_batch_data")

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """A batch is there."""
        if self._gaps is not None:
            self._gaps.step_begins()
            if not self._gaps.recorder._loop.open:
                self._gaps.recorder.training_started(position=self._position, step=self._step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """It has been trained on."""
        if self._gaps is not None:
            try:
                samples = self._samples(batch) * trainer.world_size
            except Exception as error:
                trouble("counting the samples of a batch", error)
                samples = 1
            self._position += samples
            self._step += 1
            self._gaps.recorder.step(samples)
            self._gaps.step_ends()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Validation, between two batches."""
        if self._gaps is not None and self._gaps.recorder._loop.open:
            self._begin("wasted_training.evaluation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """That is over."""
        self._end("wasted_training.evaluation")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """The loop is over."""
        if self._gaps is not None:
            self._gaps.step_begins()
            self._gaps.recorder.training_ended()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Lightning keeps an interrupt by the user to itself; every other exception shows itself."""
        if self._gaps is not None and isinstance(exception, KeyboardInterrupt):
            self._gaps.recorder.end("cancelled")

    def state_dict(self) -> dict[str, int]:
        """Return what a checkpoint keeps of this callback."""
        return {"position": self._position, "step": self._step}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Go on from where a checkpoint was taken."""
        self._position, self._step = state_dict["position"], state_dict["step"]
