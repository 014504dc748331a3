"""A trainer under torchrun for tests: a rank is killed, the ranks are restarted and go on from what is durable."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from ettwatch_trainer.remedies.checkpoints import Checkpointer
from ettwatch_trainer.remedies.recovery import Attempt
from support.checkpoint_models import Sharded

STEPS, SAVED, KILLED = 14, 6, 9


def main() -> None:
    """Train to the last step, through a kill of rank 1 if the second argument says so; leave the weights behind."""
    folder, dies = Path(sys.argv[1]), sys.argv[2] == "dies"
    attempt = Attempt.of(os.environ)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    made = Sharded(attempt.rank, attempt.world)
    with Checkpointer(folder / "checkpoints") as checkpointer:
        found = checkpointer.load(made.state)
        made.step = 0 if found is None else found.step
        (folder / f"start-{attempt.restart}-{attempt.rank}").write_text(f"{made.step} {os.getppid()} {time.time()}")
        while made.step < STEPS:
            assert not attempt.orphaned
            made.train(1)
            if made.step == SAVED:
                assert checkpointer.save(made.state, step=made.step, position=made.step * 8).ok()
            if dies and attempt.restart == 0 and attempt.rank == 1 and made.step == KILLED:
                (folder / "killed").write_text(str(time.time()))
                os.kill(os.getpid(), signal.SIGKILL)
    torch.save(made.everything(), folder / f"end-{attempt.rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
