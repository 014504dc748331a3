"""Writing one checkpoint on all ranks: the order in which it becomes durable."""

from __future__ import annotations

import shutil
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.state_dict_saver import save as dcp_save

from ettwatch_trainer.remedies.checkpoints import marker as markers
from ettwatch_trainer.remedies.checkpoints.errors import CheckpointError, SaveError
from ettwatch_trainer.remedies.checkpoints.marker import Marker
from ettwatch_trainer.remedies.checkpoints.ranks import Ranks
from ettwatch_trainer.remedies.checkpoints.shelf import Found, Shelf
from ettwatch_trainer.remedies.checkpoints.streams import Pace, Store, writer

# How many saves of an attempt compare what several ranks hold: names that clash do so from the start.
COMPARED = 2


@dataclass(slots=True)
class Saver:
    """Writes checkpoints, one at a time, on every rank. `at` is told the stage that begins, for tests of faults."""

    shelf: Shelf
    ranks: Ranks
    fingerprint: str
    pace: Pace
    at: Callable[[str], None]
    compare: int = COMPARED
    _made: Path | None = field(default=None, init=False)

    def write(self, tensors: dict[str, torch.Tensor], step: int, position: int) -> Found:
        """Write and return when it is durable on every rank's word. Raises SaveError on all ranks if one cannot."""
        self._made = None
        try:
            return self._write(tensors, step, position)
        except (Exception, CheckpointException) as error:  # the latter is no Exception
            # Disk that is full stays full with half a checkpoint on it.
            if self._made is not None and self.ranks.rank == 0:
                shutil.rmtree(self._made, ignore_errors=True)
            raise SaveError(f"the checkpoint of step {step} was not saved: {_reason(error)}") from error

    def _write(self, tensors: dict[str, torch.Tensor], step: int, position: int) -> Found:
        ranks = self.ranks
        folder, serial = ranks.first(lambda: self._begin(step))
        if self.compare and ranks.several:
            self.compare -= 1
            self._compare(tensors)
        store = Store(self.pace, self.at)
        dcp_save(
            dict(tensors),
            storage_writer=writer(folder, store),
            planner=DefaultSavePlanner(flatten_state_dict=False),
            process_group=ranks.group(),
            no_dist=not ranks.several,
        )
        files = ranks.all(lambda: store.files)
        return ranks.first(lambda: self._finish(folder, serial, step, position, files))

    def _begin(self, step: int) -> tuple[Path, int]:
        self._made, serial = self.shelf.begin(step)
        return self._made, serial

    def _finish(
        self, folder: Path, serial: int, step: int, position: int, files: list[dict[str, tuple[int, int]]]
    ) -> Found:
        together = {name: of for one in files for name, of in one.items()}
        marker = Marker(serial, step, position, self.ranks.world, self.fingerprint, time.time(), together)
        self.at("marker")
        markers.write(folder, marker, lambda: self.at("marker_rename"))
        self._made = None  # from here on it is a checkpoint, and nothing that fails takes it away
        self.at("durable")
        try:
            markers.whole(folder)
            self.shelf.retain(self.at)
        except (OSError, CheckpointError):
            pass  # too many stay; the next save tries again
        return Found.of(folder, marker)

    def _compare(self, tensors: dict[str, torch.Tensor]) -> None:
        """Raise if a name means one thing on one rank and another on another: only one of them would be written."""
        held = self.ranks.all(lambda: {name: _looks(tensor) for name, tensor in tensors.items() if _whole(tensor)})
        shared = {name for one in held for name in one if sum(name in other for other in held) > 1}
        sums = self.ranks.all(lambda: {name: _sum(tensors[name]) for name in sorted(shared & tensors.keys())})
        for name in sorted(shared):
            looks = {(one[name], total[name]) for one, total in zip(held, sums, strict=True) if name in one}
            if len(looks) > 1:
                raise CheckpointError(
                    f"{name!r} differs between ranks and only one would be kept; "
                    "name each part by what it holds, or wrap it in Local (or give compare_replicas=False)"
                )


def _whole(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter)


def _looks(tensor: torch.Tensor) -> tuple[str, tuple[int, ...]]:
    return str(tensor.dtype), tuple(tensor.shape)


def _sum(tensor: torch.Tensor) -> int:
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(data.numpy().data)


def _reason(error: BaseException) -> str:
    """The words of the rank where it began; torch.distributed.checkpoint wraps them together with its traces."""
    failures = getattr(error, "failures", None)
    if isinstance(failures, dict) and failures:
        return "; ".join(f"rank {rank}: {type(cause).__name__}: {cause}" for rank, (cause, _) in failures.items())
    return str(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
