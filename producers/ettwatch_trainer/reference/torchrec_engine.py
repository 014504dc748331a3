"""Sharding by TorchRec: DistributedModelParallel over the whole model, tables and their optimizer in FBGEMM kernels.

TorchRec is imported here and in `torchrec_plan`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from torch import nn
from torch.nn import functional
from torchrec import EmbeddingBagCollection, KeyedJaggedTensor
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DefaultDataParallelWrapper, DistributedModelParallel
from torchrec.distributed.types import ShardingEnv

from ettwatch_trainer.group import Group
from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.dense import Dense, table_name, table_rows
from ettwatch_trainer.reference.engine import Before
from ettwatch_trainer.reference.live import LiveTensors
from ettwatch_trainer.reference.torchrec_plan import collection, sharding_plan
from ettwatch_trainer.stream import Batch

# The same as that of torch.optim.Adagrad, which the plain engine has; FBGEMM's own default is another.
EPS = 1e-10


class Model(nn.Module):
    """Tables and the dense part."""

    def __init__(self, config: ReferenceConfig, dense: Dense, before: Before) -> None:
        super().__init__()
        self.tables: EmbeddingBagCollection = collection(config)
        self.dense = dense
        self._names = [table_name(number) for number in range(config.tables)]
        self._shape = (config.tables, config.dim)
        self._before = before
        self._order: torch.Tensor | None = None

    def forward(self, dense: torch.Tensor, ids: KeyedJaggedTensor) -> torch.Tensor:
        """Click logits of this rank's samples."""
        pooled = self.tables(ids)
        if self._order is None:  # sharded, they come rank by rank
            place = {name: number for number, name in enumerate(pooled.keys())}
            self._order = torch.tensor([place[name] for name in self._names])
        rows = pooled.values().unflatten(1, self._shape).index_select(1, self._order)
        self._before(dense, rows)
        score: torch.Tensor = self.dense(dense, rows)
        return score


class TorchRecEngine:
    """Tables of this rank in one kernel that steps them while gradients arrive; a copy of the dense part."""

    def __init__(
        self, config: ReferenceConfig, group: Group, owned: Sequence[Sequence[int]], dense: Dense, before: Before
    ) -> None:
        if not dist.is_initialized():  # alone: TorchRec knows no other way than through a process group
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
        rate = config.learning_rate
        sharder = EmbeddingBagCollectionSharder(
            fused_params={"optimizer": EmbOptimType.EXACT_ADAGRAD, "learning_rate": rate, "eps": EPS}
        )
        model = Model(config, dense, before)
        self._names = [table_name(number) for number in range(config.tables)]
        self._dense = dense
        self._model = DistributedModelParallel(
            model,
            env=ShardingEnv.from_process_group(dist.group.WORLD),
            device=torch.device("cpu"),
            plan=sharding_plan(model.tables, owned, sharder),
            sharders=[sharder],
            init_data_parallel=False,
            data_parallel_wrapper=DefaultDataParallelWrapper(static_graph=False),
        )
        self._of_dense = torch.optim.Adagrad(dense.parameters(), lr=rate / 5)
        # Views of what the kernel holds, which stays where it is.
        self._rows = self._own(self._model.state_dict(), "tables.embedding_bags.{}.weight")
        sums = {
            name: state
            for states in self._model.fused_optimizer.state_dict()["state"].values()
            for name, state in states.items()
        }
        self._squares = self._own(sums, "{}.momentum1")
        self._steps = torch.tensor(0.0)
        for number in owned[group.rank]:
            self._rows[table_name(number)].copy_(table_rows(config, number))

    def connect(self) -> None:
        """Replicate the dense part."""
        self._model.init_data_parallel()

    def train(self, batch: Batch) -> float:
        """One optimizer step; the loss of this rank's samples."""
        self._of_dense.zero_grad(set_to_none=True)
        scores = self._model(batch.dense, self._bags(batch.ids))
        loss = functional.binary_cross_entropy_with_logits(scores, batch.clicks)
        torch.autograd.backward(loss)  # steps the tables as well
        self._of_dense.step()
        self._steps += 1
        return loss.item()

    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds of it: the same as of the plain engine, so that either goes on from the other's."""
        return {"model": LiveTensors(self._weights), "optimizer": LiveTensors(self._sums)}

    def _bags(self, ids: torch.Tensor) -> KeyedJaggedTensor:
        """One id for each sample and table: bags of one."""
        values = ids.t().reshape(-1)
        return KeyedJaggedTensor(self._names, values, lengths=torch.ones(values.numel(), dtype=torch.int32))

    def _own(self, found: dict[str, Any], pattern: str) -> dict[str, torch.Tensor]:
        """This rank's tables, by name."""
        own: dict[str, torch.Tensor] = {}
        for name in self._names:
            sharded = found.get(pattern.format(name))
            if sharded is not None and (shards := sharded.local_shards()):
                own[name] = shards[0].tensor.detach()
        return own

    def _weights(self) -> dict[str, torch.Tensor]:
        dense = {f"dense.{name}": weight.detach() for name, weight in self._dense.named_parameters()}
        return dense | {f"tables.{name}": rows for name, rows in self._rows.items()}

    def _sums(self) -> dict[str, torch.Tensor]:
        found = {f"tables.{name}": rows for name, rows in self._squares.items()}
        found["steps.tables"] = self._steps
        for name, weight in self._dense.named_parameters():
            found[f"dense.{name}"] = self._of_dense.state[weight]["sum"]
            found[f"steps.{name}"] = self._of_dense.state[weight]["step"]
        return found
