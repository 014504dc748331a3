"""What the ranks of a test do; each function runs on every rank."""

from __future__ import annotations

import errno
import os
import signal
import threading
from pathlib import Path
from typing import Any

import torch

from ettwatch_trainer.remedies.checkpoints import Checkpointer, CheckpointError, Local
from support.checkpoint_models import Sharded


def undisturbed_run(rank: int, world: int, steps: int) -> Any:
    """Losses and weights of a run that nothing happens to."""
    made = Sharded(rank, world)
    return made.train(steps), made.everything()


def train_and_save(rank: int, world: int, folder: Path, steps: int, more: int) -> Any:
    """Save after some steps, train on beside it, and return how that went."""
    looked = threading.Event()

    def at(stage: str) -> None:
        if stage == "writing":
            looked.wait(60)

    made = Sharded(rank, world)
    with Checkpointer(folder, storage_mb_s=0.05, at=at) as checkpointer:
        losses = made.train(steps)
        saving = checkpointer.save(made.state, step=steps, position=steps * 8)
        durable = saving.durable.done()
        looked.set()
        losses += made.train(more)
        return losses, durable, saving.error(60), saving.durable.result().world


def go_on(rank: int, world: int, folder: Path, steps: int, early: bool = False) -> Any:
    """Load and train on; early: as before the ranks have joined."""
    made = Sharded(rank, world)
    torch.manual_seed(12345)
    state = made.state
    checkpointer = Checkpointer(folder)
    found = checkpointer.load(state)
    assert found is not None
    made.step = found.step
    return made.train(steps), made.everything(), found, state["data"]


def agree(rank: int, world: int, folder: Path) -> Any:
    """Rank 1 has taken an older one before the ranks joined."""
    state: dict[str, Any] = {"a": torch.zeros(3), "step": 0}
    checkpointer = Checkpointer(folder)
    found = checkpointer.load(state)
    assert found is not None
    if rank == 1:
        state["a"].zero_()
        state["step"] = -1
        checkpointer._taken = None
    checkpointer._agreed = False
    refused = refusal(lambda: checkpointer.save(state, step=9, position=9))
    checkpointer.agree(state)
    return refused, state["step"], state["a"].tolist()


def save(rank: int, world: int, folder: Path, state: dict[str, Any], settings: dict[str, Any]) -> str | None:
    """Save a state in which "mine" stands for what differs between ranks."""
    mine = {
        name: torch.full((4,), float(rank)) if value == "mine" else Local(rank) if value == "local" else value
        for name, value in state.items()
    }
    with Checkpointer(folder, **settings) as checkpointer:
        return checkpointer.save(mine, step=1, position=1).error(60)


def load(rank: int, world: int, folder: Path, state: dict[str, Any], settings: dict[str, Any]) -> Any:
    """Load, and return what came, or the words of the refusal."""
    checkpointer = Checkpointer(folder, **settings)
    refused = refusal(lambda: checkpointer.load(state))
    return refused or {name: value.value if isinstance(value, Local) else value for name, value in state.items()}


def save_on_a_full_disk(rank: int, world: int, folder: Path) -> Any:
    """Rank 1's disk is full at step 2, and not at step 3."""
    full = [True]

    def at(stage: str) -> None:
        if rank == 1 and stage == "writing" and full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")

    with Checkpointer(folder, at=at) as checkpointer:
        state = {f"table{rank}": torch.full((10,), rank)}
        first = checkpointer.save(state, step=2, position=2).error(60)
        full[0] = False
        return first, checkpointer.save(state, step=3, position=3).error(60)


def skip_while_busy(rank: int, world: int, folder: Path) -> Any:
    """Rank 1's first save takes longer than rank 0's; both leave the second one out."""

    asked = threading.Event()

    def at(stage: str) -> None:
        if stage == "writing" and rank == 1:
            asked.wait(60)

    with Checkpointer(folder, when_busy="skip", at=at) as checkpointer:
        state = {f"table{rank}": torch.zeros(10)}
        savings = [checkpointer.save(state, step=step, position=step) for step in (1, 2)]
        asked.set()
        return [saving.skipped for saving in savings], savings[0].ok(60)


def die_while_saving(rank: int, world: int, folder: Path, dead: int, stage: str) -> Any:
    """One rank is killed in a stage of its save of step 5; what the other hears of that."""

    def at(now: str) -> None:
        if rank == dead and now == stage:
            os.kill(os.getpid(), signal.SIGKILL)

    made = Sharded(rank, world)
    made.train(5)
    checkpointer = Checkpointer(folder, at=at)
    return checkpointer.save(made.state, step=5, position=40).error(60)


def refusal(call: Any) -> str | None:
    """The words of a CheckpointError."""
    try:
        call()
    except CheckpointError as error:
        return str(error)
    return None
