"""What the trainer needs of whoever shards the tables, and who offers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from ettwatch_trainer.group import Group
from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.dense import Dense
from ettwatch_trainer.stream import Batch

Before = Callable[[torch.Tensor, torch.Tensor], None]
"""Called with the inputs of the dense part before it is."""


class Engine(Protocol):
    """Model and optimizer of one rank."""

    def connect(self) -> None:
        """Replicate the dense part, when its weights are those to begin with; every rank calls it."""

    def train(self, batch: Batch) -> float:
        """One optimizer step; the loss of this rank's samples."""

    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds of it: `model` and `optimizer`, by names that do not hang on who owns what."""


def shard(
    config: ReferenceConfig, group: Group, owned: Sequence[Sequence[int]], dense: Dense, before: Before
) -> Engine:
    """The engine, with `owned[r]` the numbers of the tables of rank r."""
    from ettwatch_trainer.reference.plain_engine import PlainEngine

    return PlainEngine(config, group, owned, dense, before)


def rows_like(config: ReferenceConfig, size: int) -> torch.Tensor:
    """Rows as an engine hands them to the dense part, of zeros: strides too, for compiled code is made for these."""
    return torch.zeros(config.tables, size, config.dim).transpose(0, 1).requires_grad_()
