"""Scope what windows are told apart, and where each one is summed up."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple, get_args

from ettwatch_schemas import Scope

__all__ = ["FLEET", "Dim", "Group", "dim_of", "dims_of", "partition_of"]


class Group(NamedTuple):
    """Jobs that are counted together wherever they are counted; text is empty where a job does not say."""

    team: str
    model: str
    cluster: str


class Dim(NamedTuple):
    """What a window is about."""

    scope: Scope
    name: str
    """Which one; empty for the fleet, and for jobs that do not say, or stages that nobody owns."""


FLEET = Dim("fleet", "")


def dims_of(group: Group) -> Iterator[Dim]:
    """Yield what a group's amounts count for, but for the owners."""
    yield FLEET
    yield Dim("team", group.team)
    yield Dim("model", group.model)
    yield Dim("cluster", group.cluster)


def dim_of(by: str, name: str) -> Dim:
    """Return a dimension that was written down. Raises ValueError for one that there is not."""
    found = next((known for known in get_args(Scope) if known == by), None)
    if found is None or not isinstance(name, str):
        raise ValueError(f"{by!r:.40} is nothing by which windows are told apart")
    return Dim(found, name)


def partition_of(dim: Dim, partitions: int) -> int:
    """Return the partition in which the windows of a dimension are summed up."""
    return zlib.crc32(f"{dim.scope}/{dim.name}".encode()) % partitions
