"""Runs a function in several processes that form a gloo group, and brings back what each returned."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

PATIENCE_S = 180.0


class RankError(AssertionError):
    """A rank failed; the text is its traceback."""


def on_ranks(world: int, body: Callable[..., Any], *given: Any) -> list[Any]:
    """`body(rank, *given)` on each rank, in a new process; the results in order of rank. It must be importable."""
    import torch.multiprocessing as mp

    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="ettwatch-ranks-") as folder:
        meeting = Path(folder) / "store"
        ranks = [
            context.Process(target=_rank, args=(rank, world, str(meeting), results, body, given), daemon=True)
            for rank in range(world)
        ]
        for rank in ranks:
            rank.start()
        found: dict[int, Any] = {}
        end = monotonic() + PATIENCE_S
        try:
            while len(found) < world:
                if results.empty():
                    ranks[0].join(0.02)
                    if monotonic() > end:
                        raise RankError(f"only {sorted(found)} of {world} ranks ended within {PATIENCE_S:g} s")
                    if any(rank.exitcode for rank in ranks) and results.empty():
                        raise RankError(f"ranks ended with exit codes {[rank.exitcode for rank in ranks]}")
                    continue
                number, result, error = results.get()
                if error is not None:
                    raise RankError(f"rank {number}: {error}")
                found[number] = result
            for rank in ranks:
                rank.join(30)
        finally:
            for rank in ranks:
                if rank.is_alive():
                    rank.kill()
    return [found[number] for number in range(world)]


def _rank(rank: int, world: int, meeting: str, results: Any, body: Callable[..., Any], given: tuple[Any, ...]) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
        results.put((rank, body(rank, *given), None))
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        results.put((rank, None, traceback.format_exc()))
        raise SystemExit(1) from None
