"""The trainer of one rank: model, optimizer and reader together, and what can be done with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

from ettwatch_trainer import checkpoint
from ettwatch_trainer.compiling import compile_model
from ettwatch_trainer.config import TrainerConfig
from ettwatch_trainer.group import Group
from ettwatch_trainer.model import Dlrm, build
from ettwatch_trainer.stream import Batch, Clicks, Reader, held_out


class Stream(IterableDataset[Batch]):
    """A reader as a data set that is read once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __iter__(self) -> Iterator[Batch]:
        """The reader."""
        return self._reader


def _as_it_is(batch: Any) -> Any:
    return batch


@dataclass(slots=True)
class Trainer:
    """Knows how to restore, step, save and evaluate; knows nothing of phases and events."""

    config: TrainerConfig
    group: Group
    clicks: Clicks
    model: Dlrm
    replica: torch.nn.Module  # the model as it is stepped: compiled, and wrapped for several ranks
    optimizer: torch.optim.Optimizer
    step: int = 0
    position: int = 0

    @classmethod
    def of(cls, config: TrainerConfig, group: Group, clicks: Clicks) -> Trainer:
        """Build a fresh trainer; every rank builds the same one."""
        model = build(config)
        if config.compile:
            compile_model(model)
        replica: torch.nn.Module = DistributedDataParallel(model) if group.world > 1 else model
        rate = config.learning_rate
        # Most rows of a table are seldom read and have to learn fast; the layers are stepped by every sample.
        layers = [*model.bottom.parameters(), *model.top.parameters()]
        groups: list[dict[str, Any]] = [{"params": [*model.tables.parameters()]}, {"params": layers, "lr": rate / 5}]
        optimizer = torch.optim.Adagrad(groups, lr=rate)
        return cls(config, group, clicks, model, replica, optimizer)

    @property
    def samples(self) -> int:
        """What one step consumes, over all ranks."""
        return self.config.batch * self.group.world

    def restore(self) -> checkpoint.Checkpoint | None:
        """Go on from the newest durable checkpoint, if there is one."""
        found = checkpoint.newest(self.config.checkpoints)
        if found is not None:
            state = checkpoint.load(found, model=self.config.model_name)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.position = found.step, found.position
        return found

    def reader(self) -> Reader:
        """This rank's reader, from where training stands."""
        group = self.group
        return Reader(self.clicks, self.config, position=self.position, rank=group.rank, world=group.world)

    def loader(self) -> DataLoader[Batch]:
        """The same as PyTorch's own loader, which fetches whole batches and makes nothing of them."""
        # With a generator of its own: else it would draw its seed from the one that the model may use.
        generator = torch.Generator().manual_seed(self.config.seed)
        return DataLoader(Stream(self.reader()), batch_size=None, collate_fn=_as_it_is, generator=generator)

    def train(self, batch: Batch) -> float:
        """One optimizer step; the loss of this rank's samples."""
        self.optimizer.zero_grad(set_to_none=True)
        logits = self.replica(batch.dense, batch.ids)
        loss = functional.binary_cross_entropy_with_logits(logits, batch.clicks)
        torch.autograd.backward(loss)
        self.optimizer.step()
        self.step += 1
        self.position += self.samples
        return loss.item()

    def save(self) -> checkpoint.Checkpoint:
        """Write a checkpoint. One rank does it: all have the same state."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return checkpoint.save(
            self.config.checkpoints,
            state,
            step=self.step,
            position=self.position,
            model=self.config.model_name,
            keep=self.config.keep,
        )

    @torch.no_grad()
    def evaluate(self) -> float:
        """The log loss on held-out samples, the mean over all ranks. Not compiled: it would be a second graph."""
        losses = [self._loss(batch) for batch in self._held_out()]
        return self.group.mean(torch.stack(losses).mean())

    def _held_out(self) -> Iterator[Batch]:
        return held_out(self.clicks, self.config, self.group.rank)

    def _loss(self, batch: Batch) -> torch.Tensor:
        return functional.binary_cross_entropy_with_logits(self.model.forward(batch.dense, batch.ids), batch.clicks)
