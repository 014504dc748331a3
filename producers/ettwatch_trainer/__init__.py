"""The demo trainer: a small recommendation model on PyTorch, watched by ettwatch. What is here needs no torch."""

from ettwatch_trainer.config import ConfigError, TrainerConfig, demo

__all__ = ["ConfigError", "TrainerConfig", "demo"]
