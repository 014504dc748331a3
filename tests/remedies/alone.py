"""Run by torchrun: trains once for each name, in the same processes, and leaves losses and what was asked of others.

usage: alone.py OUT ENGINE NAME...   NAME: `undisturbed`, `none`, a remedy, or remedies joined by `+`. All but the first
are stopped after a step, without a last save, and go on as a second attempt.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

from ettwatch.noop import NoRecorder
from ettwatch_trainer.group import PATIENCE, Group
from ettwatch_trainer.reference import ReferenceConfig, job
from ettwatch_trainer.reference.engine import settled
from ettwatch_trainer.reference.start import Steps
from ettwatch_trainer.remedies.communication import CountCalls

STOP = 15


class Stopped(Exception):
    """In place of a kill."""


class Watched(Steps):
    """Counts what the metadata of tables costs, and can be closed from outside."""

    now: "Watched"
    asked = 0

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        Watched.now = self

    def metadata(self) -> list[list[int]]:
        with CountCalls() as calls:
            found = super().metadata()
        Watched.asked = calls.total
        return found


class Meeting(Group):
    """Meets the other ranks in a file, another each time: torchrun's store remembers where they were before."""

    place = Path()
    times = 0

    def join(self) -> None:
        Meeting.times += 1
        store = dist.FileStore(str(self.place / f"meeting-{self.times}"), self.world)  # type: ignore[attr-defined]
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world, timeout=PATIENCE)


def stop(config: ReferenceConfig, group: Group, step: int) -> None:
    if config.kill_at_step and group.attempt == 0 and step == config.kill_at_step:
        raise Stopped


def train(config: ReferenceConfig, group: Group) -> None:
    try:
        job.run(config, NoRecorder(), group)
    except Stopped:
        Watched.now.saving.close()
        group.leave()
        train(config, dataclasses.replace(group, attempt=1))


def main() -> None:
    out, engine, *names = sys.argv[1:]
    job.Steps, job._perhaps_die = Watched, stop  # type: ignore[assignment, attr-defined]
    group, Meeting.place = Meeting.of(os.environ), Path(out)
    Meeting.place.mkdir(parents=True, exist_ok=True)
    base = ReferenceConfig(
        steps=24,
        batch=32,
        batch_sizes=2,
        tables=6,
        rows=50,
        dim=4,
        hidden=8,
        fields=3,
        compile=False,
        engine=engine,
        checkpoint_every=6,
        least_interval_s=0.01,
        most_interval_s=0.02,  # however fast a step is, a save is due before the stop
        losses=True,
        publish=False,
    )
    asked: dict[str, int] = {}
    groups: dict[str, int] = {}
    make = dist.new_group

    def counted(*args: Any, **more: Any) -> Any:
        groups[name] += 1
        return make(*args, **more)

    dist.new_group = distributed_c10d.new_group = counted
    for name in names:
        groups[name] = 0
        remedies = () if name in ("undisturbed", "none") else name.split("+")
        config = dataclasses.replace(
            base.only(*remedies),
            out=Path(out) / name,
            kill_at_step=0 if name == "undisturbed" else STOP,
            publish=name == "standalone_publish",
        )
        train(settled(config), group)
        asked[name] = Watched.asked
    if group.rank == 0:
        (Path(out) / "asked.json").write_text(json.dumps(asked))
        (Path(out) / "groups.json").write_text(json.dumps(groups))


if __name__ == "__main__":
    main()
