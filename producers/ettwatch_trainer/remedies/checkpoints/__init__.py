"""Checkpoints that training hardly waits for, over torch.distributed.checkpoint: docs/remedies/checkpoints.md."""

from ettwatch_trainer.remedies.checkpoints.checkpointer import Checkpointer
from ettwatch_trainer.remedies.checkpoints.errors import CheckpointError, DamagedError, SaveError
from ettwatch_trainer.remedies.checkpoints.loader import read_state
from ettwatch_trainer.remedies.checkpoints.saving import Saving
from ettwatch_trainer.remedies.checkpoints.shelf import Found, pin, unpin
from ettwatch_trainer.remedies.checkpoints.state import Local

__all__ = [
    "CheckpointError",
    "Checkpointer",
    "DamagedError",
    "Found",
    "Local",
    "SaveError",
    "Saving",
    "pin",
    "read_state",
    "unpin",
]
