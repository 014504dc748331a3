"""Process groups made once: whoever asks for the same ranks gets the same group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch.distributed as dist


class Groups:
    """Process groups by their ranks. Making one is a rendezvous of all ranks; asking here again is nothing.

    As with `dist.new_group`, every rank must ask for new groups in the same order, also for those it is not in.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[tuple[int, ...], str | None, str], Any] = {}

    def get(self, ranks: Iterable[int] | None = None, *, backend: str | None = None, purpose: str = "") -> Any:
        """The group of these ranks (None: all). The whole world's own group is used where it fits.

        `purpose`: work that must not share a group with other work, such as saving in a thread, names it.
        """
        world = dist.get_world_size()
        wanted = tuple(range(world)) if ranks is None else tuple(sorted(set(ranks)))
        if not wanted or not 0 <= wanted[0] <= wanted[-1] < world:
            raise ValueError(f"ranks {list(wanted)} make no group; the job has ranks 0 to {world - 1}")
        if len(wanted) == world and not purpose and backend in (None, dist.get_backend()):
            return dist.group.WORLD
        key = (wanted, backend, purpose)
        if key not in self._made:
            self._made[key] = dist.new_group(list(wanted), backend=backend)
        return self._made[key]

    def __len__(self) -> int:
        """How many groups it has made."""
        return len(self._made)
