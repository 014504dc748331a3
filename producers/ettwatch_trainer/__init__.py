"""The demo trainer: a small recommendation model on PyTorch, watched by ettwatch. What is here needs no torch."""

from ettwatch_trainer.config import TrainerConfig, demo
from ettwatch_trainer.options import ConfigError

__all__ = ["ConfigError", "TrainerConfig", "demo"]
