"""Cheap recovery: how often to save, and restarting only what failed: docs/remedies/recovery.md."""

from ettwatch_trainer.remedies.recovery.adaptive import AdaptiveInterval
from ettwatch_trainer.remedies.recovery.interval import Optimum, daly, optimum, wasted_share, young
from ettwatch_trainer.remedies.recovery.restart import Attempt, restart_command

__all__ = [
    "AdaptiveInterval",
    "Attempt",
    "Optimum",
    "daly",
    "optimum",
    "restart_command",
    "wasted_share",
    "young",
]
