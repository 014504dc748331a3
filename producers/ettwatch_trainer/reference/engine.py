"""What the trainer needs of whoever shards the tables, and who offers it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
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


class NoEngine(RuntimeError):
    """TorchRec was asked for and cannot be used. The text says why and what to do."""


def settled(config: ReferenceConfig) -> ReferenceConfig:
    """The config with the engine that is taken: TorchRec's where it can be, unless another was asked for.

    Imports it, which takes seconds. Raises NoEngine.
    """
    if config.engine == "plain":
        return config
    reason = _fault()
    if reason and config.engine == "torchrec":
        raise NoEngine(
            f"--engine torchrec: {reason}; install torchrec and fbgemm-gpu-cpu of the versions that fit torch "
            f"{torch.__version__} (1.8.0 for 2.13), or give --engine plain"
        )
    return dataclasses.replace(config, engine="plain" if reason else "torchrec")


def _fault() -> str:
    """Why TorchRec cannot be used; empty if it can."""
    missing = [package for package in ("torchrec", "fbgemm_gpu") if find_spec(package) is None]
    if missing:
        return f"{' and '.join(missing)} cannot be found"
    try:
        import_module("ettwatch_trainer.reference.torchrec_engine")
    except Exception as error:  # what is built for another torch fails in many ways
        return f"TorchRec does not load: {error}"
    return ""


def shard(
    config: ReferenceConfig, group: Group, owned: Sequence[Sequence[int]], dense: Dense, before: Before
) -> Engine:
    """The engine, with `owned[r]` the numbers of the tables of rank r."""
    if config.engine == "torchrec":
        from ettwatch_trainer.reference.torchrec_engine import TorchRecEngine

        return TorchRecEngine(config, group, owned, dense, before)
    from ettwatch_trainer.reference.plain_engine import PlainEngine

    return PlainEngine(config, group, owned, dense, before)


def rows_like(config: ReferenceConfig, size: int) -> torch.Tensor:
    """Rows as an engine hands them to the dense part, of zeros: strides too, for compiled code is made for these."""
    if config.engine == "torchrec":
        return torch.zeros(size, config.tables, config.dim, requires_grad=True)
    return torch.zeros(config.tables, size, config.dim).transpose(0, 1).requires_grad_()
