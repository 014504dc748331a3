"""Tunes a whole step, and takes the result only if it is faster and computes the same."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ettwatch import Recorder
from ettwatch_trainer.remedies import telling
from ettwatch_trainer.remedies.autotune.budget import Budget
from ettwatch_trainer.remedies.autotune.memory import Memory, Speed
from ettwatch_trainer.remedies.autotune.search import Autotune

log = logging.getLogger(__name__)

Step = Callable[[], Any]
Build = Callable[[dict[str, Any] | None], Step]

# A step with remembered kernels may take this much longer than it did: another load, another clock rate.
SLACK = 1.5
# Of the largest number in the result.
TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Tuned:
    """What came out: the step to use, whether it is tuned, and why.

    `searched`, `reused` and `pruned` count operations, as in `Autotune`; `seconds` is what it took in all.
    """

    step: Step
    tuned: bool
    reason: str
    searched: int = 0
    reused: int = 0
    pruned: int = 0
    speed: Speed | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Tuner:
    build: Build
    memory: Memory
    budget: Budget
    freeze: bool
    steps: int

    def from_memory(self) -> Tuned | None:
        """The remembered kernels; None where there are none, or they are not as fast as they were."""
        if (speed := self.memory.speed) is None:
            return None
        if not speed.pays:
            return Tuned(self.build(None), False, "tuned kernels did not pay when they were tried", speed=speed)
        step, search = self._tuned()
        seconds, _ = self._measured(step)
        if seconds > speed.tuned_s * SLACK:
            self.memory.forget(f"with the remembered kernels a step takes {seconds:.3g} s, not {speed.tuned_s:.3g} s")
            return None
        if search.searched:
            self._keep()
        speed = Speed(seconds, speed.plain_s)
        return Tuned(step, True, "remembered", search.searched, search.reused, search.pruned, speed)

    def anew(self) -> Tuned:
        """Search, and compare with what comes out without."""
        plain = self.build(None)
        plain_s, expected = self._measured(plain)
        reason = self.memory.reason
        step, search = self._tuned()
        tuned_s, result = self._measured(step)
        off = distance(expected, result)
        speed = self.memory.speed = Speed(tuned_s, plain_s, off <= TOLERANCE)
        counts = (search.searched, search.reused, search.pruned)
        self._keep()
        if not speed.same:
            reason = f"the tuned kernels compute something else: {off:.2g} of the largest number, not {TOLERANCE}"
        elif not speed.pays:
            reason = f"a step takes {tuned_s:.3g} s with tuned kernels and {plain_s:.3g} s without"
        else:
            return Tuned(step, True, f"searched: {reason or 'nothing was remembered'}", *counts, speed)
        return Tuned(plain, False, reason, *counts, speed)

    def _keep(self) -> None:
        try:
            self.memory.save()
        except OSError as error:  # a full disk costs the memory, not what was found
            log.warning("the choices of kernels were not kept: %s", error)

    def _tuned(self) -> tuple[Step, Autotune]:
        with Autotune(self.memory, self.budget, freeze=self.freeze) as search:
            # An option that does nothing by itself: with it torch does not take this for the plain one.
            step = self.build({"max_autotune_gemm_backends": self.budget.backends})
            step()
        return step, search

    def _measured(self, step: Step) -> tuple[float, Any]:
        """The median seconds of a step after the first, and its result."""
        result = step()
        taken = []
        for _ in range(self.steps):
            began = perf_counter()
            step()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            taken.append(perf_counter() - began)
        return statistics.median(taken), result


def tune(
    build: Build,
    memory: Memory,
    *,
    budget: Budget | None = None,
    freeze: bool = False,
    steps: int = 5,
    recorder: Recorder | None = None,
) -> Tuned:
    """Compile a step with the best kernels that the budget allows; with those of the memory, if it has them.

    `build(options)` compiles (`torch.compile(..., options=options)`) and returns a step: a call without arguments
    that changes nothing, such as a forward pass over one batch, and returns what it computes. `freeze`: see
    `Autotune`; the step then runs under `torch.no_grad()`.

    The first time, the step is built without a search as well. The tuned one is taken only if its median over
    `steps` runs is not longer and its result is the same within 1e-5 of the largest number in it. Later, the
    remembered kernels must be about as fast as they were; else the memory is dropped and the search done again.
    Raises what `build` or the step raises. A memory that cannot be written is a warning.
    """
    began = perf_counter()
    tuner = _Tuner(build, memory, budget or Budget(), freeze, max(steps, 1))
    with telling.phase(recorder, "pt2_compilation.autotune") as span:
        remembered = tuner.from_memory()
        found = remembered or tuner.anew()
        span.set(cache="miss" if remembered is None else "hit", cache_key=memory.key, tuned=found.tuned)
        span.set(searched=found.searched, reused=found.reused, pruned=found.pruned, reason=found.reason)
    counts = (found.searched, found.reused, found.pruned)
    return Tuned(found.step, found.tuned, found.reason, *counts, found.speed, perf_counter() - began)


def distance(expected: Any, result: Any) -> float:
    """How far two results are apart, as a share of the largest number in the expected one; infinite if not alike."""
    one, other = (
        [leaf for leaf in pytree.tree_leaves(each) if isinstance(leaf, torch.Tensor)] for each in (expected, result)
    )
    if [(tensor.shape, tensor.dtype) for tensor in one] != [(tensor.shape, tensor.dtype) for tensor in other]:
        return float("inf")
    worst = 0.0
    for mine, theirs in zip(one, other, strict=True):
        if mine.numel() and not torch.equal(mine, theirs):
            largest = mine.abs().max().double().item() or 1.0
            apart = (mine.double() - theirs.double()).abs().max().item() / largest
            worst = max(worst, apart if apart == apart else float("inf"))  # noqa: PLR0124 - not a number
    return worst
