"""The ranks of one attempt: who this process is, and what they do together over gloo, or NCCL between GPUs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

# A peer that is gone is noticed at once (its socket closes); this is for one that hangs.
PATIENCE = timedelta(seconds=120)

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Group:
    """This process among its peers. Without torchrun it is alone: rank 0 of 1."""

    rank: int = 0
    world: int = 1
    attempt: int = 0
    parent: int | None = None  # pid of torchrun's agent
    device: torch.device = CPU

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Group:
        """Read what torchrun and `ettwatch run` tell their children."""

        def number(name: str, default: int) -> int:
            return int(environ.get(name) or default)

        attempt = number("ETTWATCH_ATTEMPT", 0) + number("TORCHELASTIC_RESTART_COUNT", 0)
        parent = os.getppid() if "TORCHELASTIC_RUN_ID" in environ else None
        return cls(number("RANK", 0), number("WORLD_SIZE", 1), attempt, parent)

    def on_gpu(self, local_rank: int) -> Group:
        """The same with its work on a GPU of this host."""
        return dataclasses.replace(self, device=torch.device("cuda", local_rank))

    def prepare_device(self) -> None:
        """Load the math library with a first product, so that no step has to."""
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        square = torch.ones(64, 64, device=self.device)
        torch.mm(square, square)

    def join(self) -> None:
        """Meet the other ranks."""
        if self.world > 1:
            # What lies on the CPU (counts, losses, plans) goes over gloo in either case.
            backend = "cpu:gloo,cuda:nccl" if self.device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=PATIENCE)

    def wait(self) -> None:
        """Return when every rank has come here."""
        if self.world > 1:
            dist.barrier()

    def mean(self, value: torch.Tensor) -> float:
        """The mean of one number over all ranks."""
        if self.world > 1:
            dist.all_reduce(value)
        return value.item() / self.world

    def leave(self) -> None:
        """Part from the other ranks. Without it gloo's threads may abort the process as it exits."""
        if dist.is_initialized():
            dist.destroy_process_group()

    @property
    def orphaned(self) -> bool:
        """Whether torchrun's agent has died: then nobody waits for this rank, and a new attempt may be running."""
        return self.parent is not None and os.getppid() != self.parent
