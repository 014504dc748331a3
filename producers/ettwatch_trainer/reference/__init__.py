"""The reference trainer: a sharded DLRM on streaming data with every remedy behind a switch. Needs no torch itself."""

from ettwatch_trainer.reference.config import REMEDIES, ReferenceConfig
from ettwatch_trainer.reference.launch import attempt_command, job_command
from ettwatch_trainer.reference.slowness import Slowness, SlownessError, committed_slowness, no_slowness, read_slowness

__all__ = [
    "REMEDIES",
    "ReferenceConfig",
    "Slowness",
    "SlownessError",
    "attempt_command",
    "committed_slowness",
    "job_command",
    "no_slowness",
    "read_slowness",
]
