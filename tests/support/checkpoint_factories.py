"""Factories that a publisher of a test imports, good and bad ones."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ettwatch_trainer.remedies.publishing import Inference

INPUTS = (torch.linspace(-1, 1, 12).reshape(4, 3),)


class Scorer(torch.nn.Module):
    """What is trained, and what scores."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Score."""
        return self.layers(features).squeeze(1)  # type: ignore[no-any-return]


class TwoFaced(Scorer):
    """Scores one way when it is exported and another way when it is not."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Score."""
        return super().forward(features) + (1.0 if torch.compiler.is_exporting() else 0.0)


def scorer() -> Inference:
    """A good one, for any number of samples."""
    return Inference(Scorer(), INPUTS, ({0: torch.export.Dim("samples", min=2)},))


def renamed() -> Inference:
    """One whose names are not those of the checkpoint."""

    def adapt(weights: Mapping[str, Any]) -> dict[str, Any]:
        return {name.removeprefix("layers."): value for name, value in weights.items()}

    return Inference(Scorer().layers, INPUTS, adapt=adapt)


def two_faced() -> Inference:
    """Scores differently once exported."""
    return Inference(TwoFaced(), INPUTS)


def other() -> Inference:
    """Another model than the checkpoint's."""
    return Inference(torch.nn.Linear(3, 3), INPUTS)


def no_inference() -> int:
    """Returns something else."""
    return 3


def broken() -> Inference:
    """Raises."""
    raise KeyError("no such feature")


def deadly(times: int, count: str) -> Inference:
    """Is killed so many times before it is good; the file `count` has a byte for each time."""
    path = Path(count)
    done = path.stat().st_size if path.exists() else 0
    if done < times:
        path.write_bytes(b"x" * (done + 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return scorer()


def flaky(count: str) -> Inference:
    """Storage fails the first time."""
    path = Path(count)
    if not path.exists():
        path.touch()
        raise OSError("storage is away")
    return scorer()
