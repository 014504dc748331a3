"""What can go wrong with checkpoints.

CheckpointError
├── SaveError         a checkpoint did not become durable; the older ones are still there
└── DamagedError      a durable checkpoint cannot be read any more; an older one is tried
"""

from __future__ import annotations


class CheckpointError(Exception):
    """A checkpoint cannot be used. The text says which, why, and what to do."""


class SaveError(CheckpointError):
    """A checkpoint did not become durable."""


class DamagedError(CheckpointError):
    """A checkpoint that was durable is not whole any more."""
