"""The order in which the Trainer of transformers 5.24 calls its callbacks, and nothing else of it."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class TrainerCallback:
    """All events, as transformers has them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *args, **more: None
        raise AttributeError(name)


class Trainer:
    def __init__(self, model: Any, args: Any, train_dataset: Any, eval_dataset: Any, callbacks: list[Any]) -> None:
        self.args, self.callbacks = args, callbacks
        self.state = SimpleNamespace(global_step=0)
        self.control = SimpleNamespace(should_evaluate=False, should_save=False)

    def call(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self.args, self.state, self.control, model=None)

    def train(self, resume_from_checkpoint: bool = False) -> None:
        done = Path(self.args.output_dir) / "step"
        self.state.global_step = int(done.read_text()) if resume_from_checkpoint else 0
        self.call("on_train_begin")
        self.call("on_epoch_begin")
        while self.state.global_step < self.args.max_steps:
            time.sleep(0.02)  # the batch
            self.call("on_step_begin")
            time.sleep(0.02)
            self.call("on_optimizer_step")
            self.state.global_step += 1
            self.control.should_evaluate = self.state.global_step % self.args.eval_steps == 0
            self.control.should_save = self.state.global_step % self.args.save_steps == 0
            self.call("on_step_end")
            self.call("on_log")
            if self.control.should_evaluate:
                time.sleep(0.05)
                self.call("on_evaluate")
                self.control.should_evaluate = False
            if self.control.should_save:
                time.sleep(0.03)
                done.parent.mkdir(exist_ok=True)
                done.write_text(str(self.state.global_step))
                self.call("on_save")
                self.control.should_save = False
        self.call("on_epoch_end")
        self.call("on_train_end")
