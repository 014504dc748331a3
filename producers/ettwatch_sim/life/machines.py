"""The hosts of a cluster: which are free, which are slow, and who waits for them."""

from bisect import insort
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from ettwatch_sim.life.dice import HOUR, dice
from ettwatch_sim.life.model import GPUS_A_HOST
from ettwatch_sim.life.scenario import Cluster

W = TypeVar("W")

_LOOKED_AT: Final = 40
"""How many of those that wait are looked at for one that fits."""
_PATIENCE: Final = 2 * HOUR
"""Who has waited so long is not passed by smaller jobs any more."""


@dataclass(order=True, slots=True)
class Waiting(Generic[W]):
    """Someone who waits: `again` comes first, then who came first."""

    rank: tuple[bool, int, int]
    hosts: int = field(compare=False)
    who: W = field(compare=False)


class Machines(Generic[W]):
    """The hosts of one cluster.

    Attributes:
        limit: How many of them may be used now.
        used: How many are used.
    """

    def __init__(self, seed: int, cluster: Cluster) -> None:
        self.cluster = cluster
        self.limit = self.total = cluster.gpus // GPUS_A_HOST
        self.used = 0
        self._free = list(range(self.total))
        chance = dice(seed, "slow", cluster.name)
        self._slow = {host for host in range(self.total) if chance.random() < cluster.slow_hosts}
        self._chance = dice(seed, "hosts", cluster.name)
        self._queue: list[Waiting[W]] = []
        self._count = 0

    def wait(self, who: W, hosts: int, now: int, *, again: bool) -> None:
        """Put someone into the queue."""
        self._count += 1
        insort(self._queue, Waiting((not again, now, self._count), hosts, who))

    def next(self, now: int) -> W | None:
        """Take the first out of the queue for whom there is room, None if there is none."""
        for i, each in enumerate(self._queue[:_LOOKED_AT]):
            if each.hosts <= self.limit - self.used:
                del self._queue[i]
                return each.who
            if now - each.rank[1] > _PATIENCE:
                return None
        return None

    def take(self, hosts: int) -> list[int]:
        """Take so many free hosts, at random."""
        self.used += hosts
        taken = []
        for _ in range(hosts):
            i = int(self._chance.random() * len(self._free))
            self._free[i], self._free[-1] = self._free[-1], self._free[i]
            taken.append(self._free.pop())
        return taken

    def give_back(self, hosts: list[int]) -> None:
        """Give hosts back."""
        self.used -= len(hosts)
        self._free += hosts

    def slow(self, hosts: list[int]) -> int | None:
        """Return the first slow host among some."""
        return next((host for host in hosts if host in self._slow), None)

    def name(self, host: int) -> str:
        """Return the name of a host."""
        return f"{self.cluster.name}-h{host:04d}"
