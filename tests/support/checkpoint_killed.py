"""A program that is killed in each stage of a save, for tests: one child for each, forked after torch is loaded."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from ettwatch_trainer.remedies.checkpoints import Checkpointer
from support.checkpoint_models import Small

STAGES = (
    "staging",
    "staged",
    "writing",
    "metadata",
    "metadata_rename",
    "marker",
    "marker_rename",
    "durable",
    "retention",
)
DEATHS = [("async", stage) for stage in STAGES]
DEATHS += [("blocking", stage) for stage in ("writing", "metadata_rename", "marker_rename", "retention")]


def train_and_die(folder: Path, mode: Any, stage: str) -> None:
    """Save steps 3, 6 and 9; die in a stage of the last one."""
    small = Small()

    def at(now: str) -> None:
        if now == stage and small.step >= 9:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpointer = Checkpointer(folder, mode=mode, keep=2, at=at)
    for _ in range(3):
        small.train(3)
        checkpointer.save(small.state, step=small.step, position=small.step * 16).ok()


def main() -> None:
    """Die once for each mode and stage; then print how the children ended."""
    torch.set_num_threads(1)
    Small().train()  # loads what torch loads late, once for all
    ends = {}
    for mode, stage in DEATHS:
        child = os.fork()
        if not child:
            train_and_die(Path(sys.argv[1]) / f"{mode}-{stage}", mode, stage)
            os._exit(0)
        ends[f"{mode}-{stage}"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.stdout.write(json.dumps(ends))


if __name__ == "__main__":
    main()
