"""What every rank must know of every shard: where it lies. Built from the plan, or asked of all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from ettwatch_trainer.remedies.communication.plan import Plan, PlanError, Table


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a table on one rank: where it begins (row, column) and how large it is (rows, columns)."""

    rank: int
    offsets: tuple[int, int]
    sizes: tuple[int, int]


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """A table as all ranks see it: its whole size and its shards in order of rank. `local`: those of this rank."""

    name: str
    size: tuple[int, int]
    shards: tuple[Shard, ...]
    local: tuple[Shard, ...]


def local_metadata(plan: Plan, rank: int) -> dict[str, TableMetadata]:
    """Shard metadata of every table as `rank` needs it, without a word to any other rank."""
    if not 0 <= rank < plan.world:
        raise PlanError(f"the plan is for ranks 0 to {plan.world - 1}; there is no rank {rank} in it")
    return {table.name: _metadata(table, _shards(plan, table), rank) for table in plan.tables}


def gathered_metadata(plan: Plan, rank: int, group: Any = None) -> dict[str, TableMetadata]:
    """The same in the usual way, for comparison: of each table every rank tells all others what it holds.

    That is one `all_gather_object` a table, itself two messages to everybody.
    """
    world = dist.get_world_size(group)
    if world != plan.world:
        raise PlanError(f"the plan is for {plan.world} ranks and the job has {world}; make a plan for {world}")
    found: dict[str, TableMetadata] = {}
    for table in plan.tables:
        mine = [shard for shard in _shards(plan, table) if shard.rank == rank]
        told: list[Any] = [None] * world
        dist.all_gather_object(told, mine, group=group)
        found[table.name] = _metadata(table, tuple(shard for shards in told for shard in shards), rank)
    return found


def _shards(plan: Plan, table: Table) -> tuple[Shard, ...]:
    return (Shard(plan.rank_of(table.name), (0, 0), (table.rows, table.dim)),)


def _metadata(table: Table, shards: tuple[Shard, ...], rank: int) -> TableMetadata:
    local = tuple(shard for shard in shards if shard.rank == rank)
    return TableMetadata(table.name, (table.rows, table.dim), shards, local)
