"""The trained model for inference: what the publisher builds it from, and the two ways to have it published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from ettwatch.noop import NoRecorder
from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.dense import Dense, table_name
from ettwatch_trainer.remedies.checkpoints import Found
from ettwatch_trainer.remedies.publishing import hand_over
from ettwatch_trainer.remedies.publishing.inference import Inference
from ettwatch_trainer.remedies.publishing.work import publish_here

FACTORY = f"{__name__}:inference"
SHAPE = ("tables", "rows", "dim", "dense", "hidden", "fields", "seed")


class Scorer(nn.Module):
    """Click logits (n) from dense features (n, dense) and one id for each table (n, tables), on one machine."""

    def __init__(self, config: ReferenceConfig) -> None:
        super().__init__()
        self.dense = Dense(config)
        self.weight = nn.Parameter(torch.empty(config.tables * config.rows, config.dim))
        self.register_buffer("first", torch.arange(config.tables).mul_(config.rows), persistent=False)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Score one batch."""
        rows = nn.functional.embedding(ids + self.get_buffer("first"), self.weight)
        score: torch.Tensor = self.dense(dense, rows)
        return score


def inference(**shape: int) -> Inference:
    """What the publisher exports; `shape` are the settings named in SHAPE."""
    config = ReferenceConfig(**shape)  # type: ignore[arg-type]

    def adapt(saved: Mapping[str, Any]) -> Mapping[str, Any]:
        tables = [saved[f"tables.{table_name(number)}"] for number in range(config.tables)]
        return {name: value for name, value in saved.items() if name.startswith("dense.")} | {
            "weight": torch.cat(tables)
        }

    generator = torch.Generator().manual_seed(config.seed)
    dense = torch.randn(4, config.dense, generator=generator)
    ids = torch.randint(config.rows, (4, config.tables), generator=generator)
    samples = torch.export.Dim("samples", min=2)
    return Inference(Scorer(config), (dense, ids), ({0: samples}, {0: samples}), adapt)


def publish(config: ReferenceConfig, found: Found, *, job: str) -> str:
    """Publish a checkpoint, or hand it over to a process that does; a line for people. Called by one rank."""
    arguments = {name: getattr(config, name) for name in SHAPE}
    request = hand_over(
        found.path,
        factory=FACTORY,
        out=config.inference,
        arguments=arguments,
        job=job or None,
        start=config.standalone_publish,
    )
    if config.standalone_publish:
        return f"handed {found.path.name} over to be published"
    return f"published {publish_here(request, NoRecorder()).name}"
