"""A checkpoint that is read ahead of its load, and the time until the last one was safe."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from ettwatch_trainer.remedies.checkpoints import Checkpointer
from ettwatch_trainer.remedies.checkpoints.streams import Pace
from support.remedies_recorder import Told

pytestmark = pytest.mark.torch


class Counted(Pace):
    """Counts the bytes that are checked."""

    def __init__(self) -> None:
        super().__init__(None)
        self.bytes = 0

    def take(self, size: int) -> None:
        self.bytes += size


def state(value: float = 0.0) -> dict[str, Any]:
    return {"weights": torch.full((1000,), value)}


def saved(folder: Path, *values: float) -> None:
    made = Checkpointer(folder, mode="blocking", keep=len(values))
    for value in values:
        assert made.save(state(value), step=int(value), position=int(value)).ok()


def counting(folder: Path, **more: Any) -> tuple[Checkpointer, Counted]:
    made = Checkpointer(folder, **more)
    made._pace = counted = Counted()
    return made, counted


def test_what_was_read_ahead_is_not_read_again(tmp_path: Path) -> None:
    saved(tmp_path, 1.0)
    usual, counted = counting(tmp_path)
    found = usual.load(state())
    assert found is not None
    assert counted.bytes == found.bytes, "a load checks nothing, so nothing is spared"
    ahead, counted = counting(tmp_path)
    assert ahead.read_ahead() == ahead.newest()
    assert counted.bytes == found.bytes
    there = state()
    assert ahead.load(there) == found
    assert counted.bytes == found.bytes
    assert torch.equal(there["weights"], torch.ones(1000))


def test_each_rank_reads_its_share_ahead_before_the_ranks_have_met(tmp_path: Path) -> None:
    saved(tmp_path, 1.0)
    found = Checkpointer(tmp_path).newest()
    assert found is not None
    shares = []
    for rank in range(2):
        made, counted = counting(tmp_path, rank=rank, world=2)
        made.read_ahead()
        shares.append(counted.bytes)
        made.load(state())
        assert counted.bytes == shares[-1]
    assert sum(shares) == found.bytes
    assert all(shares)


def test_damage_that_is_seen_ahead_is_told_by_the_load(tmp_path: Path) -> None:
    saved(tmp_path, 1.0, 2.0)
    newest = max(tmp_path.iterdir())
    data = next(newest.glob("*.distcp"))
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    made = Checkpointer(tmp_path)
    made.read_ahead()
    there = state()
    found = made.load(there)
    assert found is not None
    assert (found.step, there["weights"][0]) == (1, 1.0)
    assert data.name in found.passed_over[0]


def test_a_newer_one_than_was_read_ahead_is_checked(tmp_path: Path) -> None:
    saved(tmp_path, 1.0)
    made, counted = counting(tmp_path)
    made.read_ahead()
    before = counted.bytes
    saved(tmp_path, 2.0)
    found = made.load(state())
    assert found is not None
    assert (found.step, counted.bytes - before) == (2, found.bytes)


def test_nothing_to_read_ahead(tmp_path: Path) -> None:
    told = Told()
    made = Checkpointer(tmp_path, recorder=told.recorder)
    assert made.read_ahead() is None
    assert made.load(state()) is None
    assert [phase.name for phase in told.phases] == ["trainer_init.checkpoint_load"] * 2


def test_how_long_the_last_save_took_to_be_safe_is_known(tmp_path: Path) -> None:
    looked = threading.Event()

    def at(stage: str) -> None:
        if stage == "writing":
            looked.wait(60)

    with Checkpointer(tmp_path, storage_mb_s=0.01, at=at) as made:
        assert made.durable_after_s == 0
        saving = made.save(state(), step=1, position=1)
        assert made.durable_after_s == 0, "it is not safe yet"
        looked.set()
        assert saving.durable.result(60).durable_after_s == made.durable_after_s > 0.1
