"""When the reference trainer saves, and how: at fixed steps or at an interval that adapts; in the way or beside."""

from __future__ import annotations

from typing import Any

from ettwatch import Recorder
from ettwatch_trainer.group import Group
from ettwatch_trainer.reference.config import ReferenceConfig
from ettwatch_trainer.reference.data import Place
from ettwatch_trainer.reference.engine import Engine
from ettwatch_trainer.remedies.checkpoints import Checkpointer, Found
from ettwatch_trainer.remedies.recovery import AdaptiveInterval
from ettwatch_trainer.remedies.recovery.schedule import Schedule

INTERVALS = "intervals.json"


class NotSaved(RuntimeError):
    """The last checkpoint of the job could not be written, so there is nothing to publish and no way on."""


class Saving:
    """The checkpoints of one attempt."""

    def __init__(self, config: ReferenceConfig, recorder: Recorder, group: Group) -> None:
        self._config, self._group = config, group
        self._checkpointer = Checkpointer(
            config.checkpoints,
            mode="async" if config.async_checkpoints else "blocking",
            keep=config.keep,
            rank=group.rank,
            world=group.world,
            recorder=recorder,
            fingerprint=config.model_name,
            storage_mb_s=config.storage_mb_s or None,
        )
        self._schedule: Schedule | None = None

    def newest(self) -> Place:
        """Where training will go on; no other rank is asked."""
        found = self._checkpointer.newest()
        return Place(found.step, found.position) if found else Place()

    def read_ahead(self) -> None:
        """Read what `restore` will need, while there is no model yet; no other rank is asked."""
        self._checkpointer.read_ahead()

    def restore(self, engine: Engine) -> Place:
        """Go on from the newest durable checkpoint, if there is one."""
        found = self._checkpointer.load(self._state(engine))
        return Place(found.step, found.position) if found else Place()

    def begin(self, step: int) -> None:
        """The loop begins after `step`: from here on intervals count. Every rank calls it."""
        config = self._config
        if config.cheap_recovery and config.checkpoint_every:
            interval = None
            if self._group.rank == 0:
                interval = AdaptiveInterval(
                    minimum_s=config.least_interval_s,
                    maximum_s=config.most_interval_s,
                    failures_per_day=config.failures_per_day,
                    book=config.knowledge / INTERVALS,
                )
            self._schedule = Schedule(interval, step=step)

    def due(self, step: int) -> bool:
        """Whether to save after this step; the same on every rank."""
        if self._schedule is not None:
            return self._schedule.due(step)
        every = self._config.checkpoint_every
        return every > 0 and step % every == 0

    def save(self, engine: Engine, place: Place) -> None:
        """Save; what is written in the background is told when it is durable."""
        saving = self._checkpointer.save(self._state(engine), step=place.step, position=place.position)
        if self._schedule is not None:
            self._schedule.saved(place.step, saving.blocking_s, self._checkpointer.durable_after_s)

    def last(self, engine: Engine, place: Place) -> Found:
        """The anchor checkpoint: save, and return when it is durable. Raises NotSaved."""
        if self._schedule is not None:
            self._schedule.ended()
        saving = self._checkpointer.save(self._state(engine), step=place.step, position=place.position)
        if reason := saving.error():
            raise NotSaved(f"the last checkpoint, of step {place.step}, could not be written: {reason}")
        return saving.durable.result()

    def close(self) -> None:
        """Wait for what is under way."""
        self._checkpointer.close()

    @staticmethod
    def _state(engine: Engine) -> dict[str, Any]:
        return engine.parts()
