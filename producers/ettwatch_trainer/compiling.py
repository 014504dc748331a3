"""torch.compile, and when it works: each compilation becomes a phase of `pt2_compilation`."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from ettwatch import Recorder


def backend() -> str:
    """`inductor`, or `aot_eager` where it cannot build C++: it needs a compiler and Python's headers."""
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    headers = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return "inductor" if shutil.which(compiler) and headers.exists() else "aot_eager"


def compile_model(model: torch.nn.Module) -> None:
    """Have `model` compiled when it is first called. In place, so that the names in its state stay as they are."""
    from torch import _dynamo

    # One graph. Cut in pieces, the gradients of one piece could travel while the next is computed; here the cores
    # that would send them are those that compute, and each piece would be compiled by itself.
    _dynamo.config.optimize_ddp = False
    model.compile(backend=backend())


class CompileWatch:
    """While entered, every compilation in this process is a span: forward, backward, or a recompile.

    Dynamo's callbacks are not documented. Where they are missing, `first_step` is one span over the whole first step.
    """

    def __init__(self, recorder: Recorder, *, enabled: bool) -> None:
        self._recorder, self._enabled = recorder, enabled
        self._handler: Any = None
        self._open: AbstractContextManager[Any] | None = None

    def __enter__(self) -> CompileWatch:
        """Begin to listen."""
        if self._enabled:
            try:
                from torch._dynamo.callback import callback_handler

                callback_handler.register_start_callback(self._started)
                callback_handler.register_end_callback(self._ended)
                self._handler = callback_handler
            except (ImportError, AttributeError):
                self._handler = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        if self._handler is not None:
            self._handler.remove_start_callback(self._started)
            self._handler.remove_end_callback(self._ended)

    def first_step(self) -> AbstractContextManager[Any]:
        """To be put around the first step of an attempt."""
        if not self._enabled or self._handler is not None:
            return nullcontext()
        return self._recorder.phase("pt2_compilation")

    def _started(self, what: object) -> None:
        self._open = self._recorder.phase(phase_of(what))
        self._open.__enter__()

    def _ended(self, what: object) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None


def phase_of(what: object) -> str:
    """The phase of one compilation, from the callback's argument (a trigger, and an id such as `0/1`)."""
    number = str(getattr(what, "compile_id", "")).rpartition("/")[2]
    if number not in ("", "0"):
        return "pt2_compilation.recompile"
    trigger = getattr(getattr(what, "callback_trigger", None), "name", "")
    return "pt2_compilation.backward" if trigger == "LAZY_BACKWARD" else "pt2_compilation.forward"
