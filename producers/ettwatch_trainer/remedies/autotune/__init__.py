"""Autotuning within a budget, its choices remembered, and taken only where they are faster and compute the same."""

from ettwatch_trainer.remedies.autotune.budget import Budget
from ettwatch_trainer.remedies.autotune.memory import Kernel, Memory, Speed
from ettwatch_trainer.remedies.autotune.search import Autotune
from ettwatch_trainer.remedies.autotune.tuner import Tuned, tune

__all__ = ["Autotune", "Budget", "Kernel", "Memory", "Speed", "Tuned", "tune"]
