"""The model: embedding tables and a bottom MLP, pairwise products of their vectors, a top MLP (DLRM)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from ettwatch_trainer.config import TrainerConfig


def _mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for wide, narrow in pairwise(widths):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Dlrm(nn.Module):
    """Click logits (n) from dense features (n, dense) and one id for each table (n, tables)."""

    def __init__(self, config: TrainerConfig) -> None:
        super().__init__()
        hidden, dim = config.hidden, config.dim
        tables = [nn.Embedding(config.rows, dim) for _ in range(config.tables)]
        for table in tables:
            nn.init.normal_(table.weight, std=dim**-0.5)
        self.tables = nn.ModuleList(tables)
        self.bottom = _mlp(config.dense, hidden, hidden, dim)
        vectors = config.tables + 1
        above = torch.triu_indices(vectors, vectors, offset=1)
        # A pair of vectors by its place in the flattened (vectors x vectors) matrix of products.
        self.register_buffer("pairs", above[0] * vectors + above[1], persistent=False)
        self.top = _mlp(dim + above.shape[1], hidden, hidden, 1)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Score one batch."""
        bottom = self.bottom(dense)
        rows = [table(ids[:, number]) for number, table in enumerate(self.tables)]
        vectors = torch.stack([bottom, *rows], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        pairs = products.index_select(1, self.get_buffer("pairs"))
        score: torch.Tensor = self.top(torch.cat([bottom, pairs], dim=1))
        return score.squeeze(1)


def build(config: TrainerConfig) -> Dlrm:
    """A fresh model with weights that depend on the seed only."""
    torch.manual_seed(config.seed)
    return Dlrm(config)
