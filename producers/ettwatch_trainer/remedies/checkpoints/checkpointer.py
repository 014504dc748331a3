"""The checkpointer: saves beside training, finds what is durable, and goes on from it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

from ettwatch import Recorder
from ettwatch.checkpoint import Checkpoint
from ettwatch_trainer.remedies.checkpoints import flat, loader
from ettwatch_trainer.remedies.checkpoints.errors import CheckpointError, DamagedError, SaveError
from ettwatch_trainer.remedies.checkpoints.ranks import Ranks
from ettwatch_trainer.remedies.checkpoints.saver import COMPARED, Saver
from ettwatch_trainer.remedies.checkpoints.saving import Saving
from ettwatch_trainer.remedies.checkpoints.shelf import Found, Shelf
from ettwatch_trainer.remedies.checkpoints.state import skeleton_name, take
from ettwatch_trainer.remedies.checkpoints.streams import Pace, hush

LOG = logging.getLogger("ettwatch.remedies")


@dataclass(frozen=True, slots=True)
class _Save:
    """A save under way."""

    step: int
    position: int
    told: Checkpoint | None
    began: float
    durable: Future[Found] = field(default_factory=Future)


class Checkpointer:
    """The checkpoints of one job in one folder, which all its ranks share.

    `save`, `load` and `agree` are called by all ranks at the same steps, from the thread that trains.

    mode: "async" copies the state and writes it beside training; "blocking" returns when it is durable.
    keep: how many durable checkpoints stay; those that a publisher has pinned stay as well.
    when_busy: what a save does while one is under way: "wait" for it, or "skip" itself (on all ranks or on none).
    group: a gloo group for the checkpointer alone; made at first use if None. rank, world: who this is, where the
        ranks have not joined yet (see `agree`).
    recorder: is told of the blocking part, of what became durable, and of the upload as a background phase.
    fingerprint: what the state is of; another one is refused. on_world_change: with another number of ranks than saved
        it, "reshard" a checkpoint or "refuse" it. rng: the random generators are part of the state.
    compare_replicas: the first saves compare what several ranks hold under one name, and fail if it differs.
    storage_mb_s: write and check no faster than so many million bytes a second, for measurements.
    at: called with the name of each stage as it begins, in whichever thread it begins; for tests.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        mode: Literal["async", "blocking"] = "async",
        keep: int = 2,
        when_busy: Literal["wait", "skip"] = "wait",
        group: dist.ProcessGroup | None = None,
        rank: int | None = None,
        world: int | None = None,
        recorder: Recorder | None = None,
        fingerprint: str = "",
        on_world_change: Literal["reshard", "refuse"] = "reshard",
        rng: bool = True,
        compare_replicas: bool = True,
        storage_mb_s: float | None = None,
        at: Callable[[str], None] | None = None,
    ) -> None:
        if keep < 1:
            raise ValueError(f"keep: {keep} would leave nothing to go on from; give at least 1")
        if mode not in ("async", "blocking") or when_busy not in ("wait", "skip"):
            raise ValueError(f"mode {mode!r} and when_busy {when_busy!r}: give async or blocking, and wait or skip")
        if on_world_change not in ("reshard", "refuse"):
            raise ValueError(f"on_world_change {on_world_change!r}: give reshard or refuse")
        if storage_mb_s is not None and not storage_mb_s > 0:
            raise ValueError(f"storage_mb_s: {storage_mb_s} is no speed; give more than 0, or None")
        self._mode, self._when_busy, self._recorder = mode, when_busy, recorder
        self._fingerprint, self._reshard, self._rng = fingerprint, on_world_change == "reshard", rng
        self._at = at or _nothing
        self._pace = Pace(storage_mb_s)
        self._shelf = Shelf(Path(folder), keep)
        self._ranks = Ranks(group, rank, world)
        self._control = Ranks(None, rank, world)  # for words between ranks while the other group is in use
        self._saver = Saver(
            self._shelf, self._ranks, fingerprint, self._pace, self._at, COMPARED if compare_replicas else 0
        )
        self._stager: DefaultStager | None = None
        self._flight: threading.Thread | None = None
        self._flown: _Save | None = None
        self._taken: Found | None = None
        self._checked: frozenset[Path] = frozenset()  # files that were found whole ahead of `load`
        self.durable_after_s = 0.0  # of the save that became durable last; 0 before there was one
        self._agreed = True  # whether all ranks go on from the same one
        hush()

    def save(self, state: Mapping[str, Any], *, step: int, position: int) -> Saving:
        """Save `state` as of `step`, after `position` samples.

        What goes wrong with storage is in what is returned and in the log, not raised; the older checkpoints stay.
        CheckpointError is raised for a state that can never be saved.
        """
        if self._ranks.world > 1 and not (self._ranks.joined and self._agreed):
            raise CheckpointError(
                "the ranks have not joined, or not agreed on what they loaded; call agree() before save()"
            )
        began = time.monotonic()
        told = None if self._recorder is None else self._recorder.checkpoint(step, position, asynchronous=True)
        with nullcontext() if told is None else told:
            skipped = self._when_busy == "skip" and any(self._control.all(lambda: self._busy))
            save = _Save(step, position, told, began)
            if skipped:
                save.durable.set_exception(SaveError(f"step {step}: not saved, an earlier save was still under way"))
                waited = 0.0
            else:
                self.wait()
                waited = time.monotonic() - began
                self._start(state, save)
        return Saving(step, position, time.monotonic() - began, waited, skipped, save.durable)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until no save is under way, at most `timeout_s`; whether that is so now."""
        if self._flight is not None:
            self._flight.join(timeout_s)
            if self._flight.is_alive():
                return False
            self._flight = None
        return True

    def newest(self) -> Found | None:
        """The newest durable checkpoint whose files are all there. Asks no other rank."""
        return self._shelf.newest()

    def read_ahead(self) -> Found | None:
        """Read this rank's share of the newest durable checkpoint and check it; `load` then need not, and is short.

        It needs no model and asks no other rank: it may run beside the set-up of both. What is damaged `load` tells.
        """
        with self._phase("trainer_init.checkpoint_load"):
            found = self._shelf.newest()
            if found is not None:
                self._checked = loader.sound(found.path, self._ranks.rank, self._ranks.world, self._pace)
        return found

    def load(self, state: MutableMapping[str, Any]) -> Found | None:
        """Go on from the newest durable checkpoint; None if there never was one.

        Fills what `state` holds in place; plain values are replaced in it. A damaged checkpoint is passed over for an
        older one. CheckpointError if all are damaged, or the newest does not fit this state. All ranks take the same
        one; before the ranks have joined each takes what it finds, and `agree` is to follow.
        """
        with self._phase("trainer_init.checkpoint_load"):
            self.wait()
            self._agreed = self._ranks.joined or self._ranks.world == 1
            self._taken = self._load(state)
        return self._taken

    def agree(self, state: MutableMapping[str, Any]) -> Found | None:
        """After `load` and once the ranks have joined: make sure that all took the same one, or load again."""
        names = self._ranks.all(lambda: None if self._taken is None else self._taken.path.name)
        self._agreed = len(set(names)) == 1
        return self._taken if self._agreed else self.load(state)

    def close(self, timeout_s: float | None = 600) -> bool:
        """Wait for the save that is under way, and free what staging holds; whether nothing is under way."""
        done = self.wait(timeout_s)
        if done and self._stager is not None:
            self._stager.close()
            self._stager = None
        return done

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # If this rank failed, the others may never come to the end of the save.
        self.close(600 if error is None else 10)

    @property
    def _busy(self) -> bool:
        # What is left to do behind a save that is told to be safe, or failed, is short: it is waited for.
        flying = self._flight is not None and self._flight.is_alive()
        return flying and self._flown is not None and not self._flown.durable.done()

    def _start(self, state: Mapping[str, Any], save: _Save) -> None:
        self._at("staging")
        taken = take(state, self._ranks.rank, rng=self._rng)
        taken.tensors[skeleton_name(self._ranks.rank)] = flat.pack(taken.skeleton)
        self._ranks.group()  # made here: the thread must not be the one to make groups
        if self._mode == "blocking":
            self._write(taken.tensors, save)
            return
        if self._stager is None:
            gpu = torch.cuda.is_available()
            self._stager = DefaultStager(StagingOptions(gpu, False, False, gpu))
        staged = self._stager.stage(taken.tensors)
        self._at("staged")
        self._flight = threading.Thread(
            target=self._write, args=(staged, save), name="ettwatch-checkpoint", daemon=True
        )
        self._flown = save
        self._flight.start()

    def _write(self, tensors: Any, save: _Save) -> None:
        try:
            with self._upload(save.step):
                found = self._saver.write(tensors, save.step, save.position)
        except SaveError as error:
            LOG.warning("%s; training goes on, the older checkpoints are there", error)
            save.durable.set_exception(error)
            return
        if save.told is not None and self._ranks.rank == 0:
            save.told.durable(bytes=found.bytes)
        self.durable_after_s = time.monotonic() - save.began
        save.durable.set_result(replace(found, durable_after_s=self.durable_after_s))

    def _upload(self, step: int) -> AbstractContextManager[Any]:
        if self._recorder is None or self._mode == "blocking":
            return nullcontext()
        attrs = {"step": step}
        return self._recorder.phase("wasted_training.checkpoint_upload", background=True, attrs=attrs)

    def _load(self, state: MutableMapping[str, Any]) -> Found | None:
        without: set[str] = set()
        damage: list[str] = []
        while True:
            found = self._pick(frozenset(without), damage)
            if found is None:
                return None
            try:
                self._ranks.all(partial(self._read, found, state))
            except DamagedError as error:
                LOG.warning("%s; an older checkpoint is tried", error)
                damage.append(str(error))
                without.add(found.path.name)
                continue
            resharded = found.world != self._ranks.world
            return replace(found, resharded=resharded, passed_over=(*damage, *found.passed_over))

    def _pick(self, without: frozenset[str], damage: list[str]) -> Found | None:
        def look() -> Found | None:
            found = self._shelf.newest(without)
            if found is None and (there := self._shelf.durable()):
                raise CheckpointError(
                    f"none of the {len(there)} checkpoints in {self._shelf.folder} is whole; "
                    f"start anew in another folder. {'; '.join(damage)}"
                )
            return found

        return self._ranks.first(look) if self._ranks.several else look()

    def _read(self, found: Found, state: MutableMapping[str, Any]) -> None:
        if not found.path.exists():
            raise CheckpointError(f"{found.path} is not seen here; checkpoints need a folder that all ranks share")
        if found.fingerprint != self._fingerprint:
            raise CheckpointError(
                f"{found.path} is of {found.fingerprint!r} and this is {self._fingerprint!r}; "
                "give another folder, or the settings it was made with"
            )
        loader.load(
            found.path,
            state,
            rank=self._ranks.rank,
            world=self._ranks.world,
            rng=self._rng,
            reshard=self._reshard,
            pace=self._pace,
            checked=self._checked,
        )

    def _phase(self, name: str) -> AbstractContextManager[Any]:
        return nullcontext() if self._recorder is None else self._recorder.phase(name)


def _nothing(stage: str) -> None:
    """Do nothing."""
