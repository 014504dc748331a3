"""Ranks for tests: processes on this machine that have joined over gloo, and do what they are told, together."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PATIENCE_S = 240  # importing torch alone may take a minute on a busy machine


class Ranks:
    """`run` calls a function on every rank with its number, their number and more; and returns all results."""

    def __init__(self, world: int, store: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self.processes = []
        for rank in range(world):
            mine, theirs = context.Pipe()
            process = context.Process(target=_rank, args=(rank, world, str(store), theirs), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(mine)
            self.processes.append(process)
        self.run(_ready)

    def run(self, function: Callable[..., Any], *arguments: Any, dead: tuple[int, ...] = ()) -> list[Any]:
        """The results in order of rank; None for those that are expected to die. An error on a rank is raised here."""
        for pipe in self._pipes:
            pipe.send((function, arguments))
        results: list[Any] = []
        for rank, pipe in enumerate(self._pipes):
            if rank in dead:
                self.processes[rank].join(PATIENCE_S)
                assert self.processes[rank].exitcode is not None, f"rank {rank} lives"
                results.append(None)
                continue
            assert pipe.poll(PATIENCE_S), f"rank {rank} says nothing"
            result, error = pipe.recv()
            assert error is None, f"rank {rank}: {error}"
            results.append(result)
        return results

    def close(self) -> None:
        """End all of them."""
        for pipe in self._pipes:
            pipe.close()
        for process in self.processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()


def _ready(rank: int, world: int) -> int:
    return rank


def _rank(rank: int, world: int, store: str, pipe: Connection) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    patience = timedelta(seconds=PATIENCE_S)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world, timeout=patience)
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            os._exit(0)  # without a word to the others, which may be gone
        try:
            pipe.send((function(rank, world, *arguments), None))
        except Exception:
            pipe.send((None, traceback.format_exc()))
