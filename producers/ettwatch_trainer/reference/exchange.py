"""Ids to the ranks that own their tables, and rows back; gradients take the same way in reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist


def swap(parts: torch.Tensor, send: Sequence[int], receive: Sequence[int]) -> torch.Tensor:
    """One all_to_all: `send[r]` leading entries of `parts` go to rank r, and `receive[r]` come from it."""
    out = parts.new_empty((sum(receive), *parts.shape[1:]))
    dist.all_to_all_single(out, parts.contiguous(), list(receive), list(send))
    return out


class Swap(torch.autograd.Function):
    """`swap` that gradients can go back through."""

    @staticmethod
    def forward(ctx: Any, parts: torch.Tensor, send: Sequence[int], receive: Sequence[int]) -> torch.Tensor:
        """Send and receive."""
        ctx.send, ctx.receive = send, receive
        return swap(parts, send, receive)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Send back what belongs to what was received."""
        return swap(gradients[0], ctx.receive, ctx.send), None, None


class Exchange:
    """The tables of each rank, in the order of ranks; every rank must know the same. Ids and rows are on `device`."""

    def __init__(self, owned: Sequence[Sequence[int]], rank: int, device: torch.device) -> None:
        self.mine = list(owned[rank])
        self._counts = [len(tables) for tables in owned]
        order = torch.tensor([number for tables in owned for number in tables], dtype=torch.int64, device=device)
        self._order, self._back = order, torch.argsort(order)

    def ids(self, ids: torch.Tensor) -> torch.Tensor:
        """(n, tables) of this rank -> (own tables, n of all ranks)."""
        sorted_ids = ids.t().index_select(0, self._order)
        world, mine = len(self._counts), len(self.mine)
        if world == 1:
            return sorted_ids
        got = swap(sorted_ids, self._counts, [mine] * world)
        return got.view(world, mine, -1).transpose(0, 1).reshape(mine, -1)

    def rows(self, rows: torch.Tensor) -> torch.Tensor:
        """(own tables, n of all ranks, dim) -> (n, tables, dim) of this rank, with gradients."""
        world, mine = len(self._counts), len(self.mine)
        if world > 1:
            size = rows.shape[1] // world
            parts = rows.view(mine, world, size, -1).transpose(0, 1).reshape(world * mine, size, -1)
            rows = Swap.apply(parts, [mine] * world, self._counts)  # type: ignore[no-untyped-call]
        return rows.index_select(0, self._back).transpose(0, 1)
