"""The click stream: an endless, seeded, synthetic log of impressions that a model can learn from.

Every sample is a pure function of the seed and of its number in the stream. So the number of samples consumed (the
position) is the whole state of a reader: a resumed job reads on exactly where the last checkpoint was taken, with any
number of ranks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ettwatch_trainer.config import TrainerConfig

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint64]

# Held-out samples come from numbers that training never reaches.
HELD_OUT = 1 << 40


class Batch(NamedTuple):
    """Samples of one rank: dense features (n, dense), ids (n, tables), clicks (n) of 0.0 or 1.0."""

    dense: torch.Tensor
    ids: torch.Tensor
    clicks: torch.Tensor

    def to(self, device: torch.device) -> Batch:
        """The same samples on a device; the very same where they are there."""
        return Batch(*(each.to(device, non_blocking=True) for each in self))


def _mix(words: Words) -> Words:
    """The finalizer of splitmix64: neighbouring numbers in, unrelated 64-bit words out."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _uniform(seed: int, stream: int, first: int, count: int) -> Floats:
    """The numbers first … first+count-1 of one random sequence, uniform in [0, 1)."""
    base = _mix(np.array([seed], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(stream))
    numbers = np.arange(first, first + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((_mix(numbers + base) >> np.uint64(40)).astype(np.float32)) * np.float32(2.0**-24)


@dataclass(frozen=True, slots=True)
class Clicks:
    """The hidden truth behind the clicks: a taste for each id of each table and a weight for each dense feature."""

    seed: int
    tastes: Floats  # (tables, rows)
    weights: Floats  # (dense)

    @classmethod
    def of(cls, config: TrainerConfig) -> Clicks:
        """Draw the truth of one seed."""
        tastes = _uniform(config.seed, 1, 0, config.tables * config.rows) * 2 - 1
        weights = _uniform(config.seed, 2, 0, config.dense) * 2 - 1
        return cls(config.seed, tastes.reshape(config.tables, config.rows) * np.float32(1.6), weights)

    def read(self, position: int, count: int) -> Batch:
        """The samples position … position+count-1 of the stream."""
        tables, rows = self.tastes.shape
        width = len(self.weights) + tables + 1
        draws = _uniform(self.seed, 3, position * width, count * width).reshape(count, width)
        dense = draws[:, : len(self.weights)] * 2 - 1
        # Cubed: a few ids are popular, most are rare, as in a real log.
        ids = (draws[:, len(self.weights) : -1] ** 3 * rows).astype(np.int64)
        tastes = self.tastes[np.arange(tables), ids]
        score = tastes.sum(axis=1) + dense @ self.weights + 2 * tastes[:, 0] * tastes[:, -1] - 1
        clicks = (draws[:, -1] < 1 / (1 + np.exp(-score))).astype(np.float32)
        return Batch(torch.from_numpy(dense), torch.from_numpy(ids), torch.from_numpy(clicks))


class Reader(Iterator[Batch]):
    """One rank's view of the stream: of every `world` x `batch` samples its own `batch`, without end.

    `open_s` and `slow_read_s` are seconds that a remote store would take; all ranks sleep at the same batch.
    """

    def __init__(
        self,
        clicks: Clicks,
        config: TrainerConfig,
        *,
        position: int,
        rank: int = 0,
        world: int = 1,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.position = position
        self._clicks, self._config = clicks, config
        self._rank, self._world, self._sleep = rank, world, sleep
        self._opened = False

    def __next__(self) -> Batch:
        """Read the next batch; `position` then counts the samples that all ranks have read."""
        config = self._config
        if not self._opened:
            self._opened = True
            self._sleep(config.open_s)
        number = self.position // (config.batch * self._world)
        if config.slow_read_every and number % config.slow_read_every == config.slow_read_every - 1:
            self._sleep(config.slow_read_s)
        batch = self._clicks.read(self.position + self._rank * config.batch, config.batch)
        self.position += config.batch * self._world
        return batch


def held_out(clicks: Clicks, config: TrainerConfig, rank: int) -> Iterator[Batch]:
    """The batches one rank evaluates on: always the same, never trained on."""
    first = HELD_OUT + rank * config.evaluate_batches * config.batch
    for number in range(config.evaluate_batches):
        yield clicks.read(first + number * config.batch, config.batch)
