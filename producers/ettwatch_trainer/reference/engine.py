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
    """TorchRec or a GPU was asked for and cannot be used. The text says why and what to do."""


def settled(config: ReferenceConfig, local_world: int = 1) -> ReferenceConfig:
    """The config with the device and the engine that are taken.

    A GPU where each rank of this host has one, and TorchRec where it can be, unless another was asked for. On GPUs it
    cannot: the FBGEMM that it is installed with is the one for CPUs. Imports it, which takes seconds. Raises NoEngine.
    """
    config = dataclasses.replace(config, device=_device(config.device, local_world))
    if config.engine == "plain":
        return config
    reason = "FBGEMM is that for CPUs" if config.device == "cuda" else _fault()
    if reason and config.engine == "torchrec" and config.device == "cuda":
        raise NoEngine(f"--engine torchrec: {reason}; give --device cpu, or --engine plain")
    if reason and config.engine == "torchrec":
        raise NoEngine(
            f"--engine torchrec: {reason}; install torchrec and fbgemm-gpu-cpu of the versions that fit torch "
            f"{torch.__version__} (1.8.0 for 2.13), or give --engine plain"
        )
    return dataclasses.replace(config, engine="plain" if reason else "torchrec")


def _device(asked: str, local_world: int) -> str:
    if asked == "cpu":
        return asked
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found >= local_world:
        return "cuda"
    if asked == "cuda":
        raise NoEngine(
            f"--device cuda: torch {torch.__version__} finds {found} GPUs for {local_world} ranks of this host; "
            "give --device cpu, or start fewer ranks"
        )
    return "cpu"


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


def rows_like(config: ReferenceConfig, size: int, device: torch.device) -> torch.Tensor:
    """Rows as an engine hands them to the dense part, of zeros: strides too, for compiled code is made for these."""
    if config.engine == "torchrec":
        return torch.zeros(size, config.tables, config.dim, device=device, requires_grad=True)
    return torch.zeros(config.tables, size, config.dim, device=device).transpose(0, 1).requires_grad_()
