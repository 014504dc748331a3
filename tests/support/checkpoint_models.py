"""Small trainings for tests of checkpoints: everything that must come back bit by bit is in them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

TABLES = ("clicks", "likes", "pages")


class Small:
    """Dense layers with dropout and batch norm, Adam with a schedule, and noise from Python's generator."""

    def __init__(self, seed: int = 1) -> None:
        torch.manual_seed(seed)
        random.seed(seed)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1)
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.02)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3, 0.5)
        self.step = 0

    @property
    def state(self) -> dict[str, Any]:
        """What is saved."""
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule, "data": {"at": self.step}}

    def train(self, steps: int = 1) -> list[float]:
        """Train, and return the losses."""
        losses = []
        for _ in range(steps):
            batch = torch.randn(16, 6) + random.random()
            self.optimizer.zero_grad(set_to_none=True)
            loss = (self.model(batch) - batch.sum(1, keepdim=True)).square().mean()
            torch.autograd.backward(loss)
            self.optimizer.step()
            self.schedule.step()
            self.step += 1
            losses.append(loss.item())
        return losses

    def everything(self) -> dict[str, torch.Tensor]:
        """Weights and what the optimizer holds, copied."""
        found = {name: value.clone() for name, value in self.model.state_dict().items()}
        for number, of in self.optimizer.state_dict()["state"].items():
            found |= {f"{number}.{name}": torch.as_tensor(value).clone() for name, value in of.items()}
        return found


class Tables(torch.nn.Module):
    """The tables that one rank owns, under the names that they have on any rank, and dense layers that all have."""

    def __init__(self, owned: tuple[str, ...]) -> None:
        super().__init__()
        self.tables = torch.nn.ModuleDict()
        for number, name in enumerate(TABLES):
            torch.manual_seed(10 + number)
            table = torch.nn.Embedding(20, 4)
            if name in owned:
                self.tables[name] = table
        torch.manual_seed(7)
        self.top = torch.nn.Linear(4, 1)


class Sharded:
    """Whole tables on the ranks in turn, by plain torch; every rank trains the dense part alike."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world
        self.model = Tables(TABLES[rank::world])
        self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=0.1)
        self.step = 0
        torch.manual_seed(100 + rank)

    @property
    def state(self) -> dict[str, Any]:
        """What is saved."""
        return {"model": self.model, "optimizer": self.optimizer, "data": {"at": self.step}}

    def train(self, steps: int = 1) -> list[float]:
        """Train, and return this rank's losses. The batch is of the step; noise is of the rank's generator."""
        losses = []
        for _ in range(steps):
            ids = torch.arange(8) * (self.step + 3) % 20
            self.optimizer.zero_grad(set_to_none=True)
            pooled = torch.zeros(8, 4) + 0.01 * torch.randn(8, 4)
            for table in self.model.tables.values():
                pooled = pooled + table(ids)
            loss = (self.model.top(pooled) - 1).square().mean()
            torch.autograd.backward(loss)
            if self.world > 1:
                for parameter in self.model.top.parameters():
                    assert parameter.grad is not None
                    dist.all_reduce(parameter.grad)
            self.optimizer.step()
            self.step += 1
            losses.append(loss.item())
        return losses

    def everything(self) -> dict[str, torch.Tensor]:
        """The weights, copied."""
        return {name: value.clone() for name, value in self.model.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Bit by bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def undisturbed(make: Callable[[], Any], steps: int) -> tuple[list[float], dict[str, torch.Tensor]]:
    """What comes of a training that nothing happens to."""
    made = make()
    losses = made.train(steps)
    return losses, made.everything()
