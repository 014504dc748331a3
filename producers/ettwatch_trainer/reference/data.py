"""The stream of the reference trainer: clicks in windows of unequal traffic, with a position that can be resumed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ettwatch_trainer.config import TrainerConfig
from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.stream import Batch, Clicks


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job stands: steps done, and samples that all ranks have consumed."""

    step: int = 0
    position: int = 0


def truth(config: ReferenceConfig) -> Clicks:
    """The hidden truth behind the clicks. Many tables share what few would say, so that scores stay small."""
    drawn = Clicks.of(TrainerConfig(seed=config.seed, tables=config.tables, rows=config.rows, dense=config.dense))
    return dataclasses.replace(drawn, tastes=drawn.tastes * np.float32((8 / max(config.tables, 8)) ** 0.5))


class WindowReader(Iterator[Batch]):
    """One rank's part of each batch. Every sample is a function of the seed and its number: the place is all state."""

    def __init__(
        self,
        clicks: Clicks,
        config: ReferenceConfig,
        place: Place,
        *,
        rank: int,
        world: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.place = place
        self._clicks, self._config = clicks, config
        self._rank, self._world, self._sleep = rank, world, sleep

    def open(self) -> None:
        """Open the remote stream; here it only takes as long as the config says."""
        self._sleep(self._config.open_s)

    def __next__(self) -> Batch:
        """Read the next batch."""
        size = self._config.size_of(self.place.step)
        batch = self._clicks.read(self.place.position + self._rank * size, size)
        self.place = Place(self.place.step + 1, self.place.position + size * self._world)
        return batch


def synthetic(config: ReferenceConfig, size: int) -> Batch:
    """A batch of the right shapes and kinds, which is read from nowhere."""
    ids = torch.zeros(size, config.tables, dtype=torch.int64)
    return Batch(torch.zeros(size, config.dense), ids, torch.zeros(size))
