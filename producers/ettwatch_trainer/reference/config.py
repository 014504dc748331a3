"""The settings of the reference trainer, with one switch for each remedy. Needs no torch."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ettwatch_trainer.options import (
    About,
    ConfigError,
    arguments_of,
    check_kill,
    check_least,
    parsed,
    parser_of,
    settings_of,
)

PROGRAM = "python -m ettwatch_trainer.reference"

REMEDIES = (
    "communication",
    "overlap",
    "dynamic_shapes",
    "autotune",
    "compile_cache",
    "async_checkpoints",
    "standalone_publish",
    "cheap_recovery",
)
"""The switches, in the order of a job's life."""

ENGINES = ("auto", "torchrec", "plain")
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """Everything that one training job needs to know; the same for every rank and every attempt."""

    communication: Annotated[bool, About("remedy 1: build shard metadata from one plan that is sent once")] = True
    overlap: Annotated[bool, About("remedy 2: compile, form groups, read checkpoint and data beside each other")] = True
    dynamic_shapes: Annotated[bool, About("remedy 3: remember which input sizes vary, and compile for all at once")] = (
        True
    )
    autotune: Annotated[bool, About("remedy 4: remember tuned choices, and search within a budget")] = True
    compile_cache: Annotated[bool, About("remedy 5: carry compiled code over attempts and ranks in a store")] = True
    async_checkpoints: Annotated[bool, About("remedy 6: save in the background")] = True
    standalone_publish: Annotated[bool, About("remedy 7: publish in a process that outlives the job")] = True
    cheap_recovery: Annotated[bool, About("remedy 8: restart ranks in place, and adapt the checkpoint interval")] = True

    engine: Annotated[
        str, About("who shards the tables: torchrec, plain (torch alone), auto (torchrec if it is there)")
    ] = "auto"
    device: Annotated[
        str, About("where the model is: cpu (gloo between ranks), cuda (NCCL), auto (cuda if each rank has a GPU)")
    ] = "auto"
    out: Annotated[Path, About("folder for checkpoints, caches and published models")] = Path("ettwatch-reference")
    steps: Annotated[int, About("optimizer steps in all, over every attempt", 1)] = 200
    batch: Annotated[int, About("most samples that a rank takes in one step", 4)] = 512
    batch_sizes: Annotated[int, About("how many sizes batches have, 1 for always the same", 1)] = 3
    ranks: Annotated[int, About("processes that the launch command makes torchrun start", 1)] = 2
    seed: Annotated[int, About("seed of the click stream and of the first weights", 0)] = 2026

    tables: Annotated[int, About("embedding tables", 1)] = 200
    rows: Annotated[int, About("rows of each table", 1)] = 4_000
    dim: Annotated[int, About("width of an embedding", 1)] = 16
    dense: Annotated[int, About("dense features of a sample", 1)] = 13
    hidden: Annotated[int, About("width of a hidden MLP layer", 1)] = 256
    fields: Annotated[int, About("vectors that the tables are compressed to before they interact", 1)] = 8
    learning_rate: Annotated[float, About("learning rate of the tables; the layers get a fifth of it", 0)] = 0.02
    compile: Annotated[bool, About("compile the dense part with torch.compile")] = True

    tune: Annotated[bool, About("have inductor search for the fastest kernels, which takes long")] = False
    tune_s: Annotated[float, About("remedy 4: seconds that a search may take", 0)] = 10.0
    tune_kernels: Annotated[int, About("remedy 4: kernels tried for one operation", 1)] = 2

    checkpoint_every: Annotated[int, About("steps between two checkpoints, 0 for none in the loop", 0)] = 50
    least_interval_s: Annotated[float, About("least seconds between checkpoints, where they adapt", 0.001)] = 3.0
    most_interval_s: Annotated[float, About("most seconds between checkpoints, where they adapt", 0.001)] = 30.0
    failures_per_day: Annotated[float, About("failures to expect before any was seen, where intervals adapt", 0)] = 3.0
    keep: Annotated[int, About("checkpoints that stay on disk", 1)] = 2
    publish: Annotated[bool, About("publish the model at the end")] = True
    report_every_s: Annotated[float, About("longest silence between two progress events, in seconds", 0.1)] = 0.9
    startup_s: Annotated[float, About("seconds after which a start-up that hangs is given up", 1)] = 300.0
    store: Annotated[str, About("folder or URL of the store of compiled code; empty: in --memory")] = ""
    memory: Annotated[str, About("folder of what one job writes down for the next; empty: --out")] = ""
    losses: Annotated[bool, About("write each step's loss to OUT/losses, for comparisons")] = False

    kill_at_step: Annotated[int, About("SIGKILL one rank after this step of attempt 0, 0 for never", 0)] = 0
    fail_rank: Annotated[int, About("the rank that is killed", 0)] = 1
    open_s: Annotated[float, About("slowness: seconds that opening the remote stream takes", 0)] = 0.0
    storage_mb_s: Annotated[float, About("slowness: MB/s that the checkpoint storage takes, 0 for the disk's", 0)] = 0.0
    collective_ms: Annotated[float, About("slowness: ms that each collective of start-up takes longer", 0)] = 0.0
    host_start_s: Annotated[float, About("slowness: seconds until a host that is started anew runs a program", 0)] = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot work, before anything is started."""
        check_least(self)
        for name, value, known in (("engine", self.engine, ENGINES), ("device", self.device, DEVICES)):
            if value not in known:
                raise ConfigError(f"--{name}: there is no {value!r}; give one of {', '.join(known)}")
        check_kill(self.kill_at_step, self.steps, self.fail_rank, self.ranks)
        if self.least_interval_s > self.most_interval_s:
            raise ConfigError(
                f"--least-interval-s: {self.least_interval_s} is more than --most-interval-s ({self.most_interval_s})"
            )

    @property
    def checkpoints(self) -> Path:
        """Folder of the training checkpoints."""
        return self.out / "checkpoints"

    @property
    def inference(self) -> Path:
        """Folder that the finished model is published to."""
        return self.out / "inference"

    @property
    def knowledge(self) -> Path:
        """Folder of what one attempt writes down for the next: varying sizes, tuned choices, measured intervals."""
        return Path(self.memory or self.out) / "knowledge"

    @property
    def compile_store(self) -> str:
        """Where compiled code is kept between attempts, a folder or a URL."""
        return self.store or str(Path(self.memory or self.out) / "compiled")

    @property
    def model_name(self) -> str:
        """What a checkpoint must agree with to be resumed: shape and seed."""
        shape = f"tables={self.tables}x{self.rows}x{self.dim} dense={self.dense} hidden={self.hidden}"
        return f"{shape} fields={self.fields} seed={self.seed}"

    def size_of(self, step: int) -> int:
        """Samples that each rank takes in a step (0 is the first): the stream comes in windows of unequal traffic."""
        return self.batch - (step // 4) % self.batch_sizes * (self.batch // (2 * self.batch_sizes))

    def only(self, *remedies: str) -> ReferenceConfig:
        """The same with these remedies on and the others off. Raises ConfigError for one that is not there."""
        unknown = set(remedies) - set(REMEDIES)
        if unknown:
            raise ConfigError(f"there is no remedy {sorted(unknown)}; there are {', '.join(REMEDIES)}")
        switches: dict[str, Any] = {name: name in remedies for name in REMEDIES}
        return dataclasses.replace(self, **switches)

    def arguments(self) -> list[str]:
        """The command line that `parse` turns into an equal config; settings at their default are left out."""
        return arguments_of(self)


def settings() -> dict[str, tuple[type, About]]:
    """The type and the meaning of each setting, by name."""
    return settings_of(ReferenceConfig)


def parser() -> argparse.ArgumentParser:
    """The command line of the trainer, made from the fields of `ReferenceConfig`."""
    return parser_of(
        ReferenceConfig,
        PROGRAM,
        "Trains a sharded DLRM on a synthetic stream of clicks, with every remedy behind a switch, watched "
        "by ettwatch. Start it under torchrun for several ranks, or by itself for one.",
    )


def parse(arguments: Sequence[str] | None = None) -> ReferenceConfig:
    """Read the command line (`sys.argv` if None). Exits with code 2 and a message if it cannot work."""
    return parsed(ReferenceConfig, parser(), arguments)
