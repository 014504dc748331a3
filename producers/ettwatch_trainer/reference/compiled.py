"""torch.compile of the dense part, and what the remedies add: options, marks, code that was compiled before."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist

from ettwatch import Recorder
from ettwatch_trainer.compiling import CompileWatch, backend
from ettwatch_trainer.group import Group
from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.data import synthetic
from ettwatch_trainer.reference.dense import Dense
from ettwatch_trainer.reference.engine import rows_like
from ettwatch_trainer.remedies.autotune import Budget, Memory, tune
from ettwatch_trainer.remedies.caches import CacheKey, CompileCache, rank_zero_first
from ettwatch_trainer.remedies.shapes import Marks, ShapeWatch
from ettwatch_trainer.remedies.startup import compile_ahead

LOG = logging.getLogger("ettwatch.remedies")
MARKS = "shapes.json"
KERNELS = "kernels.json"
BACKENDS = "ATEN,CPP,TRITON"


def cache_folder(config: ReferenceConfig, group: Group) -> Path:
    """Inductor's cache of this rank. A job that is started anew finds other hosts, and so an empty folder."""
    place = f"rank-{group.rank}" if config.cheap_recovery else f"attempt-{group.attempt}-rank-{group.rank}"
    return (config.out / "inductor" / place).absolute()


class Compiled:
    """Knows how the dense part is compiled in this attempt; a context that watches compilations."""

    def __init__(self, config: ReferenceConfig, recorder: Recorder, group: Group) -> None:
        self._config, self._recorder, self._group = config, recorder, group
        self._watch = CompileWatch(recorder, enabled=config.compile)
        self._shapes = ShapeWatch(recorder) if config.compile and config.dynamic_shapes else None
        self._marks = Marks()
        self._seen = 0
        self._cache: CompileCache | None = None
        self._dense: Dense | None = None

    def __enter__(self) -> Compiled:
        """Begin to watch."""
        self._watch.__enter__()
        if self._shapes is not None:
            self._shapes.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        if self._shapes is not None:
            self._shapes.__exit__(kind, error, trace)
        self._watch.__exit__(kind, error, trace)

    def prepare(self, dense: Dense) -> None:
        """Have `dense` compiled when it is first called."""
        config = self._config
        self._dense = dense
        if not config.compile:
            return
        from torch import _dynamo

        _dynamo.config.optimize_ddp = False  # one graph: the cores that send gradients are those that compute
        dense.compile(backend=backend())
        if config.dynamic_shapes:
            self._marks = Marks.load(config.knowledge / MARKS).marks
        if config.compile_cache:
            known = {"model": config.model_name, "engine": config.engine}
            self._cache = CompileCache(
                config.compile_store,
                CacheKey.of(model=dense, config=known),
                folder=Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]),
                recorder=self._recorder,
            )

    def load(self) -> None:
        """Take what an earlier attempt compiled."""
        if self._cache is not None:
            self._cache.load()

    def ahead(self) -> None:
        """Compile now, on a made-up batch. Where the cache has nothing rank 0 does it first, and the others wait."""
        if not self._config.compile:
            return
        if self._cache is None:
            self._compile()
        elif self._group.world == 1:
            self._from_cache(self._cache)
        elif self._all(self._cache.load().hit):
            self._compile()
        else:
            with rank_zero_first():
                self._from_cache(self._cache)

    @staticmethod
    def _all(here: bool) -> bool:
        """Whether it is so on every rank; all of them ask."""
        found = torch.tensor(int(here))
        dist.all_reduce(found, dist.ReduceOp.MIN)
        return bool(found.item())

    def _from_cache(self, cache: CompileCache) -> None:
        hit = cache.load().hit
        self._compile()
        if not hit and self._group.rank == 0:
            cache.save()

    def _compile(self) -> None:
        assert self._dense is not None
        batch = synthetic(self._config, self._config.batch).to(self._group.device)
        rows = rows_like(self._config, self._config.batch, self._group.device)
        self.mark(batch.dense, rows)
        compile_ahead(self._dense, (batch.dense, rows))

    def evaluation(self) -> None:
        """Search kernels for the graph that scores held-out clicks, which rank 0 does; its weights are constants.

        A graph that trains has no kernels to choose from on a CPU.
        """
        config = self._config
        if (
            self._group.rank != 0
            or not (config.compile and config.tune and backend() == "inductor")
            or self._dense is None
        ):
            return
        frozen = copy.deepcopy(self._dense).eval()
        batch = synthetic(config, config.batch).to(self._group.device)
        rows = rows_like(config, config.batch, self._group.device).detach()

        def build(options: dict[str, Any] | None) -> Callable[[], torch.Tensor]:
            scores = torch.compile(frozen.forward, options=options)
            return lambda: scores(batch.dense, rows)

        with torch.no_grad():
            if config.autotune:
                memory = Memory.open(config.knowledge / KERNELS, config.model_name)
                budget = Budget(config.tune_s, config.tune_kernels, BACKENDS)
                tune(build, memory, budget=budget, freeze=True, recorder=self._recorder)
                return
            from torch._inductor import config as inductor

            with self._recorder.phase("pt2_compilation.autotune"), inductor.patch(freezing=True):
                build({"max_autotune": True, "max_autotune_gemm_backends": BACKENDS})()

    def mark(self, dense: torch.Tensor, rows: torch.Tensor) -> None:
        """Tell the compiler what varies, before a call."""
        if self._marks.marks and self._dense is not None:
            self._marks.apply(self._dense, dense, rows)

    def stepped(self) -> None:
        """After a step: write down what was learned, if it compiled anything. Rank 0 does it."""
        count = _compilations()
        if count == self._seen:
            return
        self._seen = count
        if self._group.rank != 0:
            return
        if self._shapes is not None and self._shapes.recompiles:
            try:
                self._shapes.marks(self._marks).save(self._config.knowledge / MARKS)
            except OSError as error:  # a full disk: the next attempt knows less, and this one goes on
                LOG.warning("sizes that vary were not written down: %s", error)
        if self._cache is not None:
            self._cache.save()


def _compilations() -> int:
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])
