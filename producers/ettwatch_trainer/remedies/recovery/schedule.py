"""The same moment to save on every rank: an interval in seconds becomes a step that all ranks know."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from ettwatch_trainer.remedies.recovery.adaptive import AdaptiveInterval


class Schedule:
    """Says when a save is due. Rank 0 measures and decides, and tells the others its decision at steps all ranks know.

    Call `due` after each step, and `saved` after each save, on every rank. `interval` is rank 0's (others may give
    None). first_steps: after so many steps their pace is known and the first save is planned. looks: how many times
    in an interval the plan is looked at anew. group: what the ranks speak over, the default group if None.
    """

    def __init__(
        self,
        interval: AdaptiveInterval | None,
        *,
        step: int = 0,
        group: dist.ProcessGroup | None = None,
        first_steps: int = 10,
        looks: int = 4,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group, self._clock, self._looks = group, clock, max(1, looks)
        self._leads = not _joined() or dist.get_rank(group) == 0
        if self._leads and interval is None:
            raise ValueError("interval: rank 0 decides, and needs one")
        self._interval = interval
        self._last_save_s = clock()
        self._paced_step, self._paced_s = step, self._last_save_s  # from where the pace is measured
        self._look_at, self._save_at = step + max(1, first_steps), -1
        if self._leads and interval is not None:
            interval.begin(self._last_save_s)

    def due(self, step: int) -> bool:
        """Whether to save after this step."""
        if step >= self._look_at:
            self._look(step)
        return 0 <= self._save_at <= step

    def saved(self, step: int, blocking_s: float, durable_after_s: float = 0.0) -> None:
        """A save was made after `step`; times as in `AdaptiveInterval.saved`. The next one is planned."""
        now = self._clock()
        if self._leads and self._interval is not None:
            self._interval.saved(now, blocking_s, durable_after_s)
        self._look(step, now, saved=True)

    def ended(self) -> None:
        """Training ended as it should."""
        if self._leads and self._interval is not None:
            self._interval.ended(self._clock())

    def _look(self, step: int, now: float | None = None, *, saved: bool = False) -> None:
        now = self._clock() if now is None else now
        if saved:
            self._last_save_s = now
        plan = (0, 0)
        if self._leads and self._interval is not None:
            plan = self._plan(step, now, self._interval.interval_s)
        if _joined() and dist.get_world_size(self._group) > 1:
            told = torch.tensor(plan, dtype=torch.int64, device=self._device())
            dist.broadcast(told, src=dist.get_global_rank(self._group, 0) if self._group else 0, group=self._group)
            plan = (int(told[0]), int(told[1]))
        self._save_at, self._look_at = plan
        self._paced_step, self._paced_s = step, now

    def _plan(self, step: int, now: float, interval_s: float) -> tuple[int, int]:
        """The step to save after, and the step to plan anew after; -1: not known yet."""
        steps, taken_s = step - self._paced_step, now - self._paced_s
        if steps <= 0 or taken_s <= 0:
            return -1, step + 1
        pace_s = taken_s / steps
        left = max(0, round((self._last_save_s + interval_s - now) / pace_s))
        return step + left, step + max(1, min(left, round(interval_s / self._looks / pace_s)))

    def _device(self) -> torch.device:
        backend = dist.get_backend(self._group)
        return torch.device("cuda", torch.cuda.current_device()) if backend == "nccl" else torch.device("cpu")


def _joined() -> bool:
    return dist.is_available() and dist.is_initialized()
