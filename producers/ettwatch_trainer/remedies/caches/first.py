"""Rank 0 compiles, the others load."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist


@contextmanager
def rank_zero_first(group: Any = None) -> Iterator[bool]:
    """The block runs on rank 0 first, then on all others at once; yields whether this is rank 0.

    Every rank of `group` (None: all) must come here, and the block must not talk to other ranks. If rank 0 fails in
    it, the others go on all the same and compile by themselves. Without torch.distributed it is just the block.
    """
    alone = not dist.is_initialized() or dist.get_world_size(group) == 1
    first = alone or dist.get_rank(group) == 0
    if not first:
        dist.barrier(group)
    try:
        yield first
    finally:
        if first and not alone:
            dist.barrier(group)
