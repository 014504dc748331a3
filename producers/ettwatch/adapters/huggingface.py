"""A callback for the Trainer of Hugging Face transformers: `Trainer(..., callbacks=[EttwatchCallback()])`."""

from importlib import import_module
from typing import Any

import ettwatch
from ettwatch.adapters.gaps import Gaps
from ettwatch.log import guarded

_Callback: Any = import_module("transformers").TrainerCallback


class EttwatchCallback(_Callback):  # type: ignore[misc]
    """Tells of first batch, steps, waits, evaluations and checkpoints.

    Give it after callbacks that ask for evaluations or checkpoints, so that it sees what they ask for. Positions
    are samples: steps times the samples of one, over all ranks. So the batch size is to be the same in all attempts.
    """

    def __init__(self) -> None:
        self._gaps: Gaps | None = None
        self._samples = 1

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Begin to record, and wait for the first batch."""
        self._begin(args, state)

    @guarded(None)
    def _begin(self, args: Any, state: Any) -> None:
        recorder = ettwatch.get() if ettwatch.get().enabled else ettwatch.init()
        self._gaps = Gaps(recorder)
        self._samples = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        if not recorder._loop.open:
            self._gaps.begin("trainer_init.get_first_batch_data")

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The batch is there."""
        if self._gaps is not None:
            self._gaps.step_begins()
            if not self._gaps.recorder._loop.open:
                step = state.global_step
                self._gaps.recorder.training_started(position=step * self._samples, step=step)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """A step is done; what the flags ask for comes next."""
        if self._gaps is not None:
            self._gaps.recorder.step(self._samples)
            self._gaps.step_ends()
            self._expect(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Evaluations and checkpoints of an epoch come after it."""
        if self._gaps is not None:
            self._expect(control)

    @guarded(None)
    def _expect(self, control: Any) -> None:
        # Evaluation comes first, then saving. Neither is told of before it is over.
        if self._gaps is not None and control.should_evaluate:
            self._gaps.begin("wasted_training.evaluation")
        elif self._gaps is not None and control.should_save:
            self._gaps.begin("wasted_training.checkpoint_save")

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """An evaluation is over."""
        if self._gaps is not None:
            self._gaps.end("wasted_training.evaluation")
            if control.should_save and self._gaps.recorder._loop.open:
                self._gaps.begin("wasted_training.checkpoint_save")

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """A checkpoint is on its disk."""
        if self._gaps is not None:
            self._gaps.end("wasted_training.checkpoint_save")
            recorder, step = self._gaps.recorder, state.global_step
            if recorder.rank == 0:
                recorder.checkpoint(step=step, position=step * self._samples, asynchronous=True).durable()

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The loop is over."""
        if self._gaps is not None:
            self._gaps.step_begins()
            self._gaps.recorder.training_ended()
            self._gaps = None
