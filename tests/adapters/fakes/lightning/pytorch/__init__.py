"""The order in which the Trainer of lightning 2.6 calls its callbacks, and nothing else of it."""

import json
import time
from pathlib import Path
from typing import Any


class Callback:
    """All hooks, as Lightning has them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *args: None
        raise AttributeError(name)


class Trainer:
    world_size = 2

    def __init__(self, max_epochs: int, callbacks: list[Any], default_root_dir: str, **more: Any) -> None:
        self.max_epochs, self.callbacks, self.root = max_epochs, callbacks, Path(default_root_dir)

    def call(self, hook: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(self, None, *args)

    def save_checkpoint(self, path: Any, weights_only: bool = False) -> None:
        time.sleep(0.03)
        Path(path).write_text(json.dumps([callback.state_dict() for callback in self.callbacks]))

    def fit(self, model: Any, train: Any, val: Any, ckpt_path: Any = None) -> None:
        self.call("setup", "fit")
        if ckpt_path:
            for callback, state in zip(self.callbacks, json.loads(Path(ckpt_path).read_text()), strict=True):
                callback.load_state_dict(state)
        self.call("on_fit_start")
        self.call("on_sanity_check_start")
        self.call("on_validation_start")
        self.call("on_validation_end")
        self.call("on_sanity_check_end")
        self.call("on_train_start")
        for _ in range(self.max_epochs):
            for number, batch in enumerate(train):
                self.call("on_train_batch_start", batch, number)
                time.sleep(0.02)
                self.call("on_train_batch_end", None, batch, number)
            self.call("on_validation_start")
            time.sleep(0.05)
            self.call("on_validation_end")
            self.save_checkpoint(self.root / "last.ckpt")
        self.call("on_train_end")
