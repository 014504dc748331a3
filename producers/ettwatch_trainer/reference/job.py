"""One attempt from start to end, phase by phase, as ettwatch is told of it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import IO

from ettwatch import Recorder
from ettwatch_trainer.group import Group
from ettwatch_trainer.job import Orphaned, PeerLost
from ettwatch_trainer.lines import Lines
from ettwatch_trainer.reference.beside import beside_each_other
from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.data import Place
from ettwatch_trainer.reference.publishing import publish
from ettwatch_trainer.reference.start import Started, Steps, batches, one_by_one


def run(config: ReferenceConfig, recorder: Recorder, group: Group) -> Place:
    """Train to the last step and publish. Returns where training stands at the end."""
    lines = Lines(attempt=group.attempt, steps=config.steps, silent=group.rank != 0)
    with recorder.phase("trainer_init.device_init"):
        group.prepare_device()
    steps = Steps(config, recorder, group)
    try:
        with steps.compiled:
            started = beside_each_other(steps) if config.overlap else one_by_one(steps)
            lines.say(f"starting at step {started.place.step}")
            place = _loop(config, recorder, group, started, lines)
        _finish(config, recorder, group, started, place, lines)
    except RuntimeError as error:
        if "by peer" not in str(error):  # what gloo says when a socket closes at the other end
            raise
        lost = PeerLost(f"rank {group.rank}: the connection to another rank broke")
        # It is seen as trouble of the network, but the other rank may have died of anything.
        recorder.failed(lost, cause="unknown")
        raise lost from error
    return place


def _loop(config: ReferenceConfig, recorder: Recorder, group: Group, started: Started, lines: Lines) -> Place:
    place, saving = started.place, started.saving
    losses = _Losses(config, group)
    saving.begin(place.step)
    with losses, recorder.training(place.position, place.step, report_every_s=config.report_every_s):
        for batch in recorder.track(batches(started)):
            if place.step >= config.steps:
                break
            loss = started.engine.train(batch)
            samples = len(batch.clicks) * group.world
            place = Place(place.step + 1, place.position + samples)
            recorder.step(samples)
            started.compiled.stepped()
            losses.write(place.step, loss)
            lines.step(place.step, loss, samples)
            if place.step < config.steps and saving.due(place.step):
                saving.save(started.engine, place)
            if group.orphaned:
                raise Orphaned(f"rank {group.rank}: torchrun's agent is gone, stopping")
            _perhaps_die(config, group, place.step)
            if place.step >= config.steps:
                break
    return place


def _finish(
    config: ReferenceConfig, recorder: Recorder, group: Group, started: Started, place: Place, lines: Lines
) -> None:
    """What comes after the loop: the anchor checkpoint, publishing, goodbye."""
    with recorder.phase("shutdown.final_checkpoint"):
        found = started.saving.last(started.engine, place)
    if config.publish:
        with recorder.phase("shutdown.model_publish"):
            if group.rank == 0:
                lines.say(publish(config, found, job=recorder.job))
            group.wait()
    with recorder.phase("shutdown.teardown"):
        started.saving.close()
        group.leave()


def _perhaps_die(config: ReferenceConfig, group: Group, step: int) -> None:
    """The injected fault: as sudden as a lost machine, and only in the first attempt."""
    if group.attempt == 0 and step == config.kill_at_step and group.rank == config.fail_rank:
        os.kill(os.getpid(), signal.SIGKILL)


class _Losses:
    """Writes each step's loss, exactly, where the config wants it: one file for each attempt and rank."""

    def __init__(self, config: ReferenceConfig, group: Group) -> None:
        name = f"attempt-{group.attempt}-rank-{group.rank}.jsonl"
        self._path: Path | None = config.out / "losses" / name if config.losses else None
        self._file: IO[str] | None = None

    def __enter__(self) -> _Losses:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("w")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, step: int, loss: float) -> None:
        """One line, flushed: the process may be killed after it."""
        if self._file is not None:
            self._file.write(json.dumps({"step": step, "loss": loss}) + "\n")
            self._file.flush()
