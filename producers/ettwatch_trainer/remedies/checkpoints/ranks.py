"""The ranks that save and load together. Without torch.distributed there is one, or as many as it is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar, cast

import torch.distributed as dist

from ettwatch_trainer.remedies.checkpoints.errors import CheckpointError, DamagedError

T = TypeVar("T")
PATIENCE = timedelta(minutes=10)


class Ranks:
    """Knows who this process is, and lets a step fail on all ranks together, so that none waits for another."""

    def __init__(self, group: dist.ProcessGroup | None, rank: int | None, world: int | None) -> None:
        self._group = group
        self._rank, self._world = rank or 0, world or 1

    @property
    def joined(self) -> bool:
        """Whether the ranks can speak to each other now."""
        return dist.is_available() and dist.is_initialized()

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return dist.get_rank(self._group) if self.joined else self._rank

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return dist.get_world_size(self._group) if self.joined else self._world

    def group(self) -> dist.ProcessGroup | None:
        """A gloo group of checkpoints' own, made at the first call (which all ranks have to make).

        In the trainer's own group a save in the background would mix its messages with those of the step.
        """
        if self._group is None and self.joined and dist.get_world_size() > 1:
            self._group = dist.new_group(backend="gloo", timeout=PATIENCE)
        return self._group

    def all(self, step: Callable[[], T]) -> list[T]:
        """Run `step` on every rank and return all results. If it raises on one, all ranks raise."""
        outcome: tuple[T | None, str | None, bool]
        try:
            outcome = (step(), None, False)
        except Exception as error:
            if not self.several:
                raise
            outcome = (None, f"rank {self.rank}: {_text(error)}", isinstance(error, DamagedError))
        if not self.several:
            return [cast(T, outcome[0])]
        outcomes: list[tuple[T | None, str | None, bool]] = [outcome] * self.world
        dist.all_gather_object(outcomes, outcome, group=self.group())
        errors = [(text, damaged) for _, text, damaged in outcomes if text is not None]
        if errors:
            # Damage sends all to an older checkpoint; anything else has to be put right by somebody.
            kind = DamagedError if all(damaged for _, damaged in errors) else CheckpointError
            raise kind("; ".join(text for text, _ in errors))
        return [cast(T, result) for result, _, _ in outcomes]

    def first(self, step: Callable[[], T]) -> T:
        """Run `step` on rank 0 and return its result on every rank. If it raises there, all ranks raise."""
        return cast(T, self.all(lambda: step() if self.rank == 0 else None)[0])

    @property
    def several(self) -> bool:
        """Whether there are other ranks to speak to now."""
        return self.joined and self.world > 1


def _text(error: BaseException) -> str:
    return str(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
