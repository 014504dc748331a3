"""One attempt from start to end, phase by phase, as ettwatch is told of it."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext

from ettwatch import Recorder
from ettwatch_trainer.compiling import CompileWatch
from ettwatch_trainer.config import TrainerConfig
from ettwatch_trainer.group import Group
from ettwatch_trainer.lines import Lines
from ettwatch_trainer.publish import publish
from ettwatch_trainer.stream import Batch, Clicks
from ettwatch_trainer.trainer import Trainer


class Orphaned(SystemExit):
    """torchrun's agent has died; this rank stops, since a new attempt may be running already."""


class PeerLost(RuntimeError):
    """Another rank of this attempt has died, so this one cannot go on."""


def run(config: TrainerConfig, recorder: Recorder, group: Group) -> Trainer:
    """Train to the last step and publish. Returns the trainer as it stands at the end."""
    lines = Lines(attempt=group.attempt, steps=config.steps, silent=group.rank != 0)
    phase = recorder.phase
    with phase("trainer_init.device_init"):
        group.prepare_device()
    with phase("trainer_init.process_group_init"):
        group.join()
    with phase("trainer_init.preproc_creation"):
        clicks = Clicks.of(config)
    with phase("trainer_init.train_module_creation"):
        trainer = Trainer.of(config, group, clicks)
    with phase("trainer_init.checkpoint_load"):
        found = trainer.restore()
    lines.say(f"resumed at step {found.step}" if found else "nothing to resume, starting at step 0")
    # The recorder times the waits for data, and makes this first one a phase of its own.
    batches = iter(recorder.track(trainer.loader()))
    first = next(batches)
    try:
        _loop(config, recorder, trainer, lines, itertools.chain([first], batches))
        _finish(config, recorder, trainer, lines, first)
    except RuntimeError as error:
        # What gloo says when a socket closes at the other end.
        if "by peer" not in str(error):
            raise
        lost = PeerLost(f"rank {group.rank}: the connection to another rank broke after step {trainer.step}")
        # It is seen as trouble of the network, but the other rank may have died of anything.
        recorder.failed(lost, cause="unknown")
        raise lost from error
    return trainer


def _loop(config: TrainerConfig, recorder: Recorder, trainer: Trainer, lines: Lines, batches: Iterator[Batch]) -> None:
    """The training loop, with checkpoints and evaluations between the steps."""
    group, start = trainer.group, trainer.step
    if config.compile:
        lines.say("first step, compiling")
    with (
        CompileWatch(recorder, enabled=config.compile) as compiling,
        recorder.training(position=trainer.position, step=start, report_every_s=config.report_every_s),
    ):
        while trainer.step < config.steps:
            batch = next(batches)
            with compiling.first_step() if trainer.step == start else nullcontext():
                loss = trainer.train(batch)
            recorder.step(trainer.samples)
            lines.step(trainer.step, loss, trainer.samples)
            if trainer.step < config.steps:
                _between(config, recorder, trainer, lines)
            if group.orphaned:
                raise Orphaned(f"rank {group.rank}: torchrun's agent is gone, stopping")
            _perhaps_die(config, group, trainer.step)


def _between(config: TrainerConfig, recorder: Recorder, trainer: Trainer, lines: Lines) -> None:
    if config.evaluate_every and trainer.step % config.evaluate_every == 0:
        with recorder.phase("wasted_training.evaluation"):
            loss = trainer.evaluate()
        lines.say(f"step {trainer.step}/{config.steps}  evaluated, loss {loss:.3f} on held-out clicks")
    if config.checkpoint_every and trainer.step % config.checkpoint_every == 0:
        _save(recorder, trainer)
        lines.say(f"step {trainer.step}/{config.steps}  checkpoint is durable")


def _save(recorder: Recorder, trainer: Trainer) -> None:
    """Rank 0 writes, and the others wait for it: for all of them that is the time of the checkpoint."""
    with recorder.checkpoint(step=trainer.step, position=trainer.position) as told:
        if trainer.group.rank == 0:
            told.durable(bytes=trainer.save().size)
        trainer.group.wait()


def _perhaps_die(config: TrainerConfig, group: Group, step: int) -> None:
    """The injected fault: as sudden as a lost machine, and only in the first attempt."""
    if group.attempt == 0 and step == config.kill_at_step and group.rank == config.fail_rank:
        os.kill(os.getpid(), signal.SIGKILL)


def _finish(config: TrainerConfig, recorder: Recorder, trainer: Trainer, lines: Lines, sample: Batch) -> None:
    """What comes after the loop: last checkpoint, publishing, goodbye. The other ranks wait for rank 0."""
    group = trainer.group
    lines.say("trained, writing the last checkpoint")
    _save(recorder, trainer)
    lines.say("publishing the model for inference")
    with recorder.phase("shutdown.model_publish"):
        if group.rank == 0:
            folder = publish(trainer.model, sample, config.inference, step=trainer.step, position=trainer.position)
            lines.say(f"published {folder}")
        group.wait()
    with recorder.phase("shutdown.teardown"):
        group.leave()
