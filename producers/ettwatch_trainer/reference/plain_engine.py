"""Sharding with torch alone: each table on one rank, rows by all_to_all, the dense part replicated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from ettwatch_trainer.group import Group
from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.dense import Dense
from ettwatch_trainer.reference.engine import Before
from ettwatch_trainer.reference.exchange import Exchange
from ettwatch_trainer.reference.live import LiveTensors
from ettwatch_trainer.reference.tables import OwnTables
from ettwatch_trainer.stream import Batch


class PlainEngine:
    """Tables of this rank, a copy of the dense part, and an optimizer for each."""

    def __init__(
        self, config: ReferenceConfig, group: Group, owned: Sequence[Sequence[int]], dense: Dense, before: Before
    ) -> None:
        self._group, self._before = group, before
        self._exchange = Exchange(owned, group.rank, group.device)
        self._tables = OwnTables(config, self._exchange.mine).to(group.device)
        self._dense = dense
        self._replica: torch.nn.Module = dense
        rate = config.learning_rate
        # Adagrad has its sums from the first on, so that a state has its shape before the first step.
        self._of_tables = torch.optim.Adagrad([self._tables.weight], lr=rate)
        self._of_dense = torch.optim.Adagrad(dense.parameters(), lr=rate / 5)

    def connect(self) -> None:
        """Replicate the dense part."""
        if self._group.world > 1:
            self._replica = DistributedDataParallel(self._dense)

    def train(self, batch: Batch) -> float:
        """One optimizer step; the loss of this rank's samples."""
        batch = batch.to(self._group.device)
        self._of_tables.zero_grad(set_to_none=True)
        self._of_dense.zero_grad(set_to_none=True)
        found = self._exchange.rows(self._tables(self._exchange.ids(batch.ids)))
        # A leaf, as in `rows_like`: what is compiled must not hang on where the rows come from.
        rows = found.detach().requires_grad_()
        self._before(batch.dense, rows)
        loss = functional.binary_cross_entropy_with_logits(self._replica(batch.dense, rows), batch.clicks)
        torch.autograd.backward(loss)
        assert rows.grad is not None
        # Of the mean over all ranks, as the gradients of the dense part are.
        torch.autograd.backward(found, rows.grad / self._group.world)
        self._of_tables.step()
        self._of_dense.step()
        return loss.item()

    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds of it."""
        return {"model": LiveTensors(self._weights), "optimizer": LiveTensors(self._sums)}

    def _weights(self) -> dict[str, torch.Tensor]:
        dense = {f"dense.{name}": weight.detach() for name, weight in self._dense.named_parameters()}
        return dense | {f"tables.{name}": rows for name, rows in self._tables.named(self._tables.weight).items()}

    def _sums(self) -> dict[str, torch.Tensor]:
        of_tables = self._of_tables.state[self._tables.weight]
        found = {f"tables.{name}": rows for name, rows in self._tables.named(of_tables["sum"]).items()}
        found["steps.tables"] = of_tables["step"]
        for name, weight in self._dense.named_parameters():
            found[f"dense.{name}"] = self._of_dense.state[weight]["sum"]
            found[f"steps.{name}"] = self._of_dense.state[weight]["step"]
        return found
