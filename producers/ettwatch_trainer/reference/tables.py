"""The embedding tables of one rank: one stacked weight, stepped row by row, seen by checkpoints table by table."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.dense import table_name, table_rows


class OwnTables(nn.Module):
    """Looks up one id for each sample in each of this rank's tables."""

    def __init__(self, config: ReferenceConfig, numbers: Sequence[int]) -> None:
        super().__init__()
        self.numbers, self._rows = list(numbers), config.rows
        self.weight = nn.Parameter(torch.empty(len(self.numbers) * config.rows, config.dim))
        self.register_buffer("first", torch.arange(len(self.numbers)).mul_(config.rows).unsqueeze(1), persistent=False)
        with torch.no_grad():
            for number, rows in zip(self.numbers, self.split(self.weight), strict=True):
                rows.copy_(table_rows(config, number))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(own tables, n) -> (own tables, n, dim)."""
        return nn.functional.embedding(ids + self.get_buffer("first"), self.weight, sparse=True)

    def split(self, stacked: torch.Tensor) -> list[torch.Tensor]:
        """A tensor of the weight's shape by tables: views, which may be written to."""
        return list(torch.split(stacked.detach(), self._rows)) if self.numbers else []

    def named(self, stacked: torch.Tensor) -> dict[str, torch.Tensor]:
        """The same by the names of the tables."""
        return {table_name(number): rows for number, rows in zip(self.numbers, self.split(stacked), strict=True)}
