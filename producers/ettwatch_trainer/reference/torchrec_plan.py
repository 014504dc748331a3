"""Which rank holds which table, as TorchRec has it: planned by it among all ranks, or built from what is known."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.distributed.collective_utils import init_collective_validation
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology
from torchrec.distributed.sharding_plan import construct_module_sharding_plan, table_wise
from torchrec.distributed.types import ShardingPlan

from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.dense import table_name

KERNEL = "fused"
MODULE = "tables"


def collection(config: ReferenceConfig) -> EmbeddingBagCollection:
    """All tables, without memory: each rank gets that of its own when they are sharded."""
    tables = [
        EmbeddingBagConfig(
            name=table_name(number),
            num_embeddings=config.rows,
            embedding_dim=config.dim,
            feature_names=[table_name(number)],
        )
        for number in range(config.tables)
    ]
    return EmbeddingBagCollection(tables=tables, device=torch.device("meta"))


def sharding_plan(
    tables: EmbeddingBagCollection, owned: Sequence[Sequence[int]], sharder: EmbeddingBagCollectionSharder
) -> ShardingPlan:
    """The plan in which rank r has the tables `owned[r]`, built without a word to another rank."""
    world = len(owned)
    places = {
        table_name(number): table_wise(rank=rank, compute_kernel=KERNEL)
        for rank, numbers in enumerate(owned)
        for number in numbers
    }
    made = construct_module_sharding_plan(
        tables, places, sharder=sharder, local_size=world, world_size=world, device_type="cpu"
    )
    return ShardingPlan({MODULE: made})


def collective_places(config: ReferenceConfig) -> list[int]:
    """The rank of each table as TorchRec's planner wants it, which rank 0 asks; every rank calls this."""
    world = dist.get_world_size()
    constraints = {
        table_name(number): ParameterConstraints(sharding_types=["table_wise"], compute_kernels=[KERNEL])
        for number in range(config.tables)
    }
    planner = EmbeddingShardingPlanner(
        topology=Topology(world_size=world, local_world_size=world, compute_device="cpu"),
        batch_size=config.batch,
        constraints=constraints,
    )
    holder = torch.nn.Module()
    holder.add_module(MODULE, collection(config))
    plan = planner.collective_plan(holder, [EmbeddingBagCollectionSharder()], dist.group.WORLD)
    places = plan.get_plan_for_module(MODULE)
    return [places[table_name(number)].ranks[0] for number in range(config.tables)]


def agree() -> None:
    """What TorchRec asks all ranks once when a model is made: here, where ranks talk, and not beside other steps."""
    init_collective_validation(dist.group.WORLD)
