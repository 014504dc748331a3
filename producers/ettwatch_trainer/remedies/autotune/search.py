"""Inductor's search for kernels, with a memory and a budget."""

from __future__ import annotations

import hashlib
import logging
import math
from contextlib import ExitStack
from time import perf_counter
from types import TracebackType
from typing import Any

import torch

from ettwatch_trainer.remedies.autotune.budget import Budget
from ettwatch_trainer.remedies.autotune.memory import Kernel, Memory

log = logging.getLogger(__name__)


class Autotune:
    """While entered, inductor searches for kernels within a budget, and takes those that are remembered at once.

    Whatever is compiled in the block is autotuned (`max_autotune`). `freeze`: weights are constants, for a model
    that only reads; on a CPU there is nothing to search without it. `reused`, `searched` and `pruned` count
    operations: taken from the memory, searched now, and given the library's kernel because the budget was used up.
    """

    def __init__(self, memory: Memory, budget: Budget | None = None, *, freeze: bool = False) -> None:
        self.memory, self.budget = memory, budget or Budget()
        self.reused = self.searched = self.pruned = 0
        self.seconds = 0.0  # spent on searching
        self.available = False
        self._freeze = freeze
        self._slowest = 0.0  # of one operation
        self._now: tuple[str, float, int] | None = None  # what is being searched, since when, among how many kernels
        self._settings = ExitStack()
        self._selector: Any = None

    def __enter__(self) -> Autotune:
        """Hook in."""
        from torch._inductor import config

        try:
            from torch._inductor.select_algorithm import get_algorithm_selector_cache

            self._selector = get_algorithm_selector_cache()
            self._selector.add_preprocessing_fn(self._choose)
            self._selector.add_feedback_saver(self._learn)
            self.available = True
        except (ImportError, AttributeError):
            log.warning("this torch has no hooks for choosing kernels: its own are taken, without a search")
            return self
        # Torch's caches give back what was compiled under the same tag: a restart finds this search's code, and a
        # search that is done again does not.
        known = (self.memory.key, self.memory.searches, self.budget, self._freeze)
        tag = hashlib.sha256(repr(known).encode()).hexdigest()[:16]
        settings = {
            "max_autotune": True,
            "max_autotune_gemm_backends": self.budget.backends,
            "freezing": self._freeze,
            "autotune_local_cache": False,
        }
        self._settings.enter_context(config.patch(settings))
        everywhere: Any = torch.compiler.config
        self._settings.enter_context(everywhere.patch(cache_key_tag=tag))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go."""
        if not self.available:
            return
        self._settings.close()
        if self.searched and self.pruned:  # there is more to find: the next run goes on
            self.memory.searches += 1
        for hooks, mine in (
            (self._selector.preprocessing_fns, self._choose),
            (self._selector.feedback_saver_fns, self._learn),
        ):
            if mine in hooks:
                hooks.remove(mine)
        self.available = False

    def _choose(self, choices: list[Any]) -> list[Any]:
        """The kernels that inductor may try for one operation. An exception here would hit the training step."""
        self._now = None
        try:
            operation = _operation(choices)
            known = self.memory.kernels.get(operation)
            if known is not None:
                for choice in choices:
                    if choice.hash_key() == known.choice:
                        self.reused += 1
                        return [choice]
            library = [choice for choice in choices if _is_library(choice)]
            if len(choices) < 2 or not library:
                return choices
            if self.seconds + self._slowest > self.budget.seconds or self.budget.seconds == 0:
                self.pruned += 1
                return library[:1]
            others = [choice for choice in choices if not _is_library(choice)]
            kept = [library[0], *others, *library[1:]][: self.budget.kernels]
            self._now = (operation, perf_counter(), len(kept))
        except Exception:
            log.exception("the kernels of an operation were left to inductor")
            return choices
        return kept

    def _learn(self, timings: dict[Any, float], *more: Any) -> None:
        """Remember what won."""
        try:
            if self._now is None:
                return
            operation, began, tried = self._now
            self._now = None
            took = perf_counter() - began
            self.seconds += took
            self._slowest = max(self._slowest, took)
            self.searched += 1
            best = min(timings, key=timings.__getitem__, default=None)
            if best is not None and math.isfinite(timings[best]):
                self.memory.kernels[operation] = Kernel(best.hash_key(), best.name, timings[best], tried)
        except Exception:
            log.exception("the choice for an operation was not kept")


def _is_library(choice: Any) -> bool:
    """Whether a kernel is a library's (ATen, MKL, cuBLAS): nothing is built for it."""
    from torch._inductor.select_algorithm import ExternKernelCaller

    return isinstance(choice, ExternKernelCaller)


def _operation(choices: list[Any]) -> str:
    """A stable name of what is to be computed: from its inputs and its output, and from the library's kernel for it."""
    first = choices[0]
    told = [_layout(node.get_layout()) for node in first.input_nodes]
    libraries = sorted(choice.hash_key() for choice in choices if _is_library(choice))
    return hashlib.sha256(repr([told, _layout(first.layout), libraries]).encode()).hexdigest()[:24]


def _layout(layout: Any) -> str:
    return f"{layout.device} {layout.dtype} {[str(n) for n in layout.size]} {[str(n) for n in layout.stride]}"
