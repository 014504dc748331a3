"""The settings of the demo trainer, on the command line and in code. Needs no torch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ettwatch_trainer.options import About, arguments_of, check_kill, check_least, parsed, parser_of, settings_of

PROGRAM = "python -m ettwatch_trainer"


@dataclass(frozen=True, slots=True)
class TrainerConfig:
    """Everything that one training job needs to know; the same for every rank and every attempt."""

    out: Annotated[Path, About("folder for checkpoints, compile cache and published model")] = Path("ettwatch-demo")
    steps: Annotated[int, About("optimizer steps in all, over every attempt", 1)] = 200
    batch: Annotated[int, About("samples a rank takes in one step", 1)] = 2048
    ranks: Annotated[int, About("processes that the launch command makes torchrun start", 1)] = 2
    seed: Annotated[int, About("seed of the click stream and of the first weights", 0)] = 2026

    tables: Annotated[int, About("embedding tables", 1)] = 8
    rows: Annotated[int, About("rows of each table", 1)] = 20_000
    dim: Annotated[int, About("width of an embedding", 1)] = 32
    dense: Annotated[int, About("dense features of a sample", 1)] = 13
    hidden: Annotated[int, About("width of a hidden MLP layer", 1)] = 384
    learning_rate: Annotated[float, About("learning rate of the tables; the layers get a fifth of it", 0)] = 0.02
    compile: Annotated[bool, About("compile the model with torch.compile")] = True

    checkpoint_every: Annotated[int, About("steps between two checkpoints, 0 for none in the loop", 0)] = 50
    keep: Annotated[int, About("checkpoints that stay on disk", 1)] = 2
    evaluate_every: Annotated[int, About("steps between two evaluations, 0 for none", 0)] = 100
    evaluate_batches: Annotated[int, About("batches of one evaluation, for each rank", 1)] = 4
    report_every_s: Annotated[float, About("longest silence between two progress events, in seconds", 0.1)] = 3.0

    kill_at_step: Annotated[int, About("SIGKILL one rank after this step of attempt 0, 0 for never", 0)] = 0
    fail_rank: Annotated[int, About("the rank that is killed", 0)] = 1
    open_s: Annotated[float, About("seconds that opening the stream takes, as from a remote store", 0)] = 0.0
    slow_read_every: Annotated[int, About("every so many batches one read is slow, 0 for never", 0)] = 0
    slow_read_s: Annotated[float, About("seconds that a slow read takes", 0)] = 0.5

    def __post_init__(self) -> None:
        """Refuse what cannot work, before anything is started."""
        check_least(self)
        check_kill(self.kill_at_step, self.steps, self.fail_rank, self.ranks)

    @property
    def checkpoints(self) -> Path:
        """Folder of the training checkpoints."""
        return self.out / "checkpoints"

    @property
    def inference(self) -> Path:
        """Folder that the finished model is published to."""
        return self.out / "inference"

    @property
    def compile_cache(self) -> Path:
        """Folder of inductor's cache; it outlives the attempt, so a restart compiles less."""
        return self.out / "inductor"

    @property
    def model_name(self) -> str:
        """What a checkpoint must agree with to be resumed: shape and seed."""
        shape = f"tables={self.tables}x{self.rows}x{self.dim} dense={self.dense} hidden={self.hidden}"
        return f"{shape} seed={self.seed}"

    def arguments(self) -> list[str]:
        """The command line that `parse` turns into an equal config; settings at their default are left out."""
        return arguments_of(self)


def settings() -> dict[str, tuple[type, About]]:
    """The type and the meaning of each setting, by name."""
    return settings_of(TrainerConfig)


def demo(out: Path) -> TrainerConfig:
    """The run that `ettwatch demo` shows: about 100 s on two idle cores, one rank killed on the way.

    The kill comes well after a checkpoint, so that the steps done twice can be seen in the report.
    """
    return TrainerConfig(
        out=out,
        steps=380,
        checkpoint_every=110,
        evaluate_every=150,
        kill_at_step=270,
        open_s=0.5,
        slow_read_every=40,
        slow_read_s=0.5,
    )


def parser() -> argparse.ArgumentParser:
    """The command line of the trainer, made from the fields of `TrainerConfig`."""
    return parser_of(
        TrainerConfig,
        PROGRAM,
        "Trains a small recommendation model on synthetic clicks, watched by ettwatch. "
        "Start it under torchrun for several ranks, or by itself for one.",
    )


def parse(arguments: Sequence[str] | None = None) -> TrainerConfig:
    """Read the command line (`sys.argv` if None). Exits with code 2 and a message if it cannot work."""
    return parsed(TrainerConfig, parser(), arguments)
