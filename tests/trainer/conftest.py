"""A model small enough to train in a test, and a trainer of it."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ettwatch_trainer.config import TrainerConfig

# Without the trainer extra only what needs no torch can be tested.
collect_ignore = (
    []
    if importlib.util.find_spec("torch")
    else [path.name for path in Path(__file__).parent.glob("test_*.py") if "import torch\n" in path.read_text()]
)


@pytest.fixture
def small(tmp_path: Path) -> TrainerConfig:
    """Takes a millisecond a step; not compiled."""
    return TrainerConfig(
        out=tmp_path / "out",
        steps=30,
        batch=64,
        tables=3,
        rows=50,
        dim=8,
        dense=4,
        hidden=16,
        compile=False,
        checkpoint_every=10,
        evaluate_every=20,
        evaluate_batches=2,
        report_every_s=0.3,
    )


@pytest.fixture
def changed(small: TrainerConfig) -> Callable[..., TrainerConfig]:
    """`changed(steps=3)`: the small config with other settings."""

    def change(**settings: Any) -> TrainerConfig:
        return dataclasses.replace(small, **settings)

    return change
