"""What start-up is made of. The order is another module's: one after the other, or beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch.distributed as dist

from ettwatch import Recorder
from ettwatch_trainer.group import Group
from ettwatch_trainer.reference.compiled import Compiled
from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.data import Place, WindowReader, truth
from ettwatch_trainer.reference.dense import Dense, build_dense, table_name
from ettwatch_trainer.reference.engine import Engine, shard
from ettwatch_trainer.reference.saving import Saving
from ettwatch_trainer.reference.slow import SlowCollectives
from ettwatch_trainer.remedies.communication import (
    Plan,
    Table,
    TableMetadata,
    gathered_metadata,
    local_metadata,
    make_plan,
    share_plan,
)
from ettwatch_trainer.stream import Batch


@dataclass(slots=True)
class Started:
    """Ready for the first step."""

    engine: Engine
    saving: Saving
    place: Place
    first: Batch
    reader: WindowReader
    compiled: Compiled


class Steps:
    """Each step of start-up as a call; what it needs of another is its argument."""

    def __init__(self, config: ReferenceConfig, recorder: Recorder, group: Group) -> None:
        self.config, self.recorder, self.group = config, recorder, group
        self.saving = Saving(config, recorder, group)
        self.compiled = Compiled(config, recorder, group)

    def join(self) -> None:
        """Meet the other ranks."""
        self.group.join()

    def metadata(self) -> list[list[int]]:
        """The numbers of the tables of each rank, once every rank knows all shards."""
        config, group = self.config, self.group
        tables = [Table(table_name(number), config.rows, config.dim) for number in range(config.tables)]
        with SlowCollectives(config.collective_ms):
            if config.engine == "torchrec" and dist.is_initialized():
                from ettwatch_trainer.reference.torchrec_plan import agree

                agree()
            found = self._from_plan(tables) if config.communication else self._gathered(tables)
        owned: list[list[int]] = [[] for _ in range(group.world)]
        for number, table in enumerate(tables):
            for part in found[table.name].shards:
                owned[part.rank].append(number)
        return owned

    def _from_plan(self, tables: Sequence[Table]) -> dict[str, TableMetadata]:
        mine = make_plan(tables, self.group.world) if self.group.rank == 0 else None
        return local_metadata(share_plan(mine, tables=tables), self.group.rank)

    def _gathered(self, tables: Sequence[Table]) -> dict[str, TableMetadata]:
        plan = make_plan(tables, self.group.world)
        if not dist.is_initialized():
            return local_metadata(plan, self.group.rank)
        if self.config.engine == "torchrec":
            from ettwatch_trainer.reference.torchrec_plan import collective_places

            plan = Plan(self.group.world, tuple(tables), tuple(collective_places(self.config)))
        return gathered_metadata(plan, self.group.rank)

    def dense(self) -> Dense:
        """The dense part, set up to be compiled."""
        dense = build_dense(self.config).to(self.group.device)
        self.compiled.prepare(dense)
        return dense

    def engine(self, owned: list[list[int]], dense: Dense) -> Engine:
        """Tables and optimizers."""
        return shard(self.config, self.group, owned, dense, self.compiled.mark)

    def restore(self, engine: Engine) -> Place:
        """Go on from the newest durable checkpoint."""
        return self.saving.restore(engine)

    def connect(self, engine: Engine) -> None:
        """Replicate what is replicated, with the weights to begin with."""
        engine.connect()

    def reader(self, place: Place) -> tuple[Batch, WindowReader]:
        """Open the stream where training stands, and read the first batch."""
        group = self.group
        reader = WindowReader(truth(self.config), self.config, place, rank=group.rank, world=group.world)
        reader.open()
        return next(reader), reader


def one_by_one(steps: Steps) -> Started:
    """The usual way: each step waits for the one before it, and the first training step compiles."""
    phase = steps.recorder.phase
    with phase("trainer_init.process_group_init"):
        steps.join()
    with phase("trainer_init.shard_metadata"):
        owned = steps.metadata()
    with phase("trainer_init.train_module_creation"):
        dense = steps.dense()
        engine = steps.engine(owned, dense)
    place = steps.restore(engine)
    with phase("trainer_init.get_first_batch_data"):
        first, reader = steps.reader(place)
    with phase("trainer_init.pre_train"):
        steps.connect(engine)
        steps.compiled.load()
    steps.compiled.evaluation()
    return Started(engine, steps.saving, place, first, reader, steps.compiled)


def batches(started: Started) -> Iterator[Batch]:
    """The first batch, and all that follow."""
    yield started.first
    yield from started.reader
