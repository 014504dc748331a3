"""Restarting only what failed: the agent of torchrun stays, with its machine, and starts the ranks anew."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


def restart_command(
    argv: Sequence[str],
    *,
    ranks: int,
    max_restarts: int = 3,
    compile_cache: Path | None = None,
    look_every_s: float = 0.1,
    python: str = sys.executable,
) -> tuple[list[str], dict[str, str]]:
    """A torchrun command line for this machine, and variables to add to its environment.

    argv: what torchrun starts, such as `["-m", "my.trainer", "--steps", "100"]`. compile_cache: a folder that outlives
    the ranks, so that a restart compiles little. look_every_s: how often the agent looks whether a rank has died.
    """
    if ranks < 1 or max_restarts < 0:
        raise ValueError(f"ranks {ranks} and max_restarts {max_restarts}: give at least 1 and at least 0")
    command = [python, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    command += ["--nproc-per-node", str(ranks), "--max-restarts", str(max_restarts)]
    command += ["--monitor-interval", str(look_every_s), *argv]
    variables = {
        # The agent's own store keeps the addresses of dead ranks, and restarted ranks would read them: with gloo some
        # restarts hang. Without it each attempt gets a store of its own.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
    }
    if compile_cache is not None:
        variables["TORCHINDUCTOR_CACHE_DIR"] = str(compile_cache.absolute())
    return command, variables


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which rank of which start this process is. `restart` counts the restarts by the agent, `parent` is its pid."""

    rank: int = 0
    world: int = 1
    restart: int = 0
    parent: int | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Attempt:
        """Read what torchrun tells its children."""

        def number(name: str, default: int) -> int:
            return int(environ.get(name) or default)

        parent = os.getppid() if "TORCHELASTIC_RUN_ID" in environ else None
        return cls(number("RANK", 0), number("WORLD_SIZE", 1), number("TORCHELASTIC_RESTART_COUNT", 0), parent)

    @property
    def orphaned(self) -> bool:
        """Whether the agent has died: nobody waits for this rank then, and a new attempt may be running. End it."""
        return self.parent is not None and os.getppid() != self.parent
