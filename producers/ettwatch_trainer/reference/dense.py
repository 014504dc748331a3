"""The dense part of the model: what every rank has a copy of, and what is compiled."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from ettwatch_trainer.reference.config import ReferenceConfig


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for wide, narrow in pairwise(widths):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Dense(nn.Module):
    """Click logits (n) from dense features (n, dense) and the rows of all tables (n, tables, dim).

    With hundreds of tables the pairwise products of all would be most of the model, so the rows are first compressed
    to a few vectors by a learned matrix.
    """

    def __init__(self, config: ReferenceConfig) -> None:
        super().__init__()
        hidden, dim, fields = config.hidden, config.dim, config.fields
        self.bottom = mlp(config.dense, hidden, dim)
        self.compress = nn.Parameter(torch.randn(fields, config.tables) * config.tables**-0.5)
        vectors = fields + 1
        above = torch.triu_indices(vectors, vectors, offset=1)
        self.register_buffer("pairs", above[0] * vectors + above[1], persistent=False)
        self.top = mlp(dim + above.shape[1], hidden, 1)

    def forward(self, dense: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Score one batch."""
        bottom = self.bottom(dense)
        fields = torch.matmul(self.compress, rows)
        vectors = torch.cat([bottom.unsqueeze(1), fields], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        chosen = products.index_select(1, self.get_buffer("pairs"))
        score: torch.Tensor = self.top(torch.cat([bottom, chosen], dim=1))
        return score.squeeze(1)


def build_dense(config: ReferenceConfig) -> Dense:
    """The dense part with weights that depend on the seed only."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return Dense(config)


def table_name(number: int) -> str:
    """What a table is called in plans and checkpoints."""
    return f"table_{number:04d}"


def table_rows(config: ReferenceConfig, number: int) -> torch.Tensor:
    """The first weights of one table: a function of seed and number, so that it does not matter which rank has it."""
    generator = torch.Generator().manual_seed(config.seed * 100_003 + number)
    drawn: torch.Tensor = torch.randn(config.rows, config.dim, generator=generator) * config.dim**-0.5
    return drawn
