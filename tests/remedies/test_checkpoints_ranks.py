"""Checkpoints of several ranks: tables on different ranks, other numbers of ranks, ranks that die or cannot write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ettwatch_trainer.remedies.checkpoints import Checkpointer, CheckpointError, Local, read_state
from support import checkpoint_scenes as scenes
from support.checkpoint_models import TABLES, Sharded, same
from support.checkpoint_ranks import Ranks

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    made = Ranks(2, tmp_path_factory.mktemp("ranks") / "store")
    yield made
    made.close()


def test_sharded_tables_come_back_bit_by_bit_after_a_save_beside_training(two: Ranks, tmp_path: Path) -> None:
    whole = two.run(scenes.undisturbed_run, 12)
    first = two.run(scenes.train_and_save, tmp_path, 5, 3)
    for (losses, durable, error, world), (wanted, _) in zip(first, whole, strict=True):
        assert losses == wanted[:8]
        assert not durable, "save waited for the storage"
        assert (error, world) == (None, 2)
    second = two.run(scenes.go_on, tmp_path, 7)
    for (losses, end, found, data), (wanted, wanted_end) in zip(second, whole, strict=True):
        assert (found.step, found.position, found.resharded, data) == (5, 40, False, {"at": 5})
        assert losses == wanted[5:]
        assert same(end, wanted_end)


def _fully_sharded(rank: int, world: int, folder: Path, steps: int) -> list[float]:
    """Weights in pieces on all ranks (FSDP), and an optimizer that has nothing before its first step."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    fully_shard(model, mesh=init_device_mesh("cpu", (world,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    state = {"model": model, "optimizer": optimizer}
    losses = []
    with Checkpointer(folder, mode="blocking") as checkpointer:
        found = checkpointer.load(state)
        for step in range(found.step if found else 0, steps):
            chance = torch.Generator().manual_seed(step * world + rank)
            optimizer.zero_grad()
            loss = model(torch.randn(4, 3, generator=chance)).square().mean()
            torch.autograd.backward(loss)
            optimizer.step()
            losses.append(loss.item())
        assert checkpointer.save(state, step=steps, position=steps).ok()
    return losses


def test_weights_in_pieces_and_their_optimizer_come_back(two: Ranks, tmp_path: Path) -> None:
    undisturbed = two.run(_fully_sharded, tmp_path / "a", 9)
    first, second = two.run(_fully_sharded, tmp_path / "b", 4), two.run(_fully_sharded, tmp_path / "b", 9)
    for rank, losses in enumerate(undisturbed):
        assert first[rank] + second[rank] == losses
    one, other = (Checkpointer(tmp_path / name).newest() for name in ("a", "b"))
    assert one is not None
    assert other is not None
    assert same(read_state(one.path, "model"), read_state(other.path, "model"))
    moments, others = (read_state(found.path, "optimizer")["state"] for found in (one, other))
    assert moments["model.0.weight"]["exp_avg"].shape == (8, 3)
    assert moments.keys() == others.keys()
    assert all(same(moments[name], others[name]) for name in moments)


def test_another_number_of_ranks_takes_the_tables_and_their_optimizer_up(two: Ranks, tmp_path: Path) -> None:
    two.run(scenes.train_and_save, tmp_path, 5, 0)
    weights = read_state(tmp_path.iterdir().__next__(), "model")
    assert set(weights) == {*(f"tables.{name}.weight" for name in TABLES), "top.weight", "top.bias"}
    one = Sharded(0, 1)
    state = one.state
    found = Checkpointer(tmp_path).load(state)
    assert found is not None
    assert (found.world, found.resharded, state["data"]) == (2, True, {"at": 5})
    assert same(one.everything(), weights)
    sums = read_state(found.path, "optimizer")["state"]
    for name, parameter in one.model.named_parameters():
        assert torch.equal(one.optimizer.state[parameter]["sum"], sums[f"model.{name}"]["sum"])
    # … and back: the one saves, and two go on.
    folder = tmp_path / "one"
    one.train(2)
    assert Checkpointer(folder, mode="blocking").save(one.state, step=7, position=56).ok()
    for rank, (_, end, found, _) in enumerate(two.run(scenes.go_on, folder, 0)):
        assert (found.world, found.resharded) == (1, True)
        mine = {name: value for name, value in one.everything().items() if name in end}
        assert same(end, mine)
        assert sum("tables" in name for name in end) == len(TABLES[rank::2])


def test_another_number_of_ranks_is_refused_where_that_is_wanted_or_cannot_be(two: Ranks, tmp_path: Path) -> None:
    two.run(scenes.save, tmp_path / "a", {"a": 1}, {})
    with pytest.raises(CheckpointError, match="was saved by 2 ranks and there are 1; start as many, or"):
        Checkpointer(tmp_path / "a", on_world_change="refuse").load({"a": 0})
    two.run(scenes.save, tmp_path / "b", {"a": "local"}, {})
    assert two.run(scenes.load, tmp_path / "b", {"a": Local(None)}, {}) == [{"a": 0}, {"a": 1}]
    with pytest.raises(CheckpointError, match="'a' is local to each rank, so only as many ranks"):
        Checkpointer(tmp_path / "b").load({"a": Local(0)})


@pytest.mark.parametrize("value", ["mine"])
def test_a_name_that_means_two_things_is_refused_when_it_is_saved(two: Ranks, tmp_path: Path, value: str) -> None:
    first, second = two.run(scenes.save, tmp_path, {"table": value}, {})
    assert first == second
    assert "'table' differs between ranks and only one would be kept; name each part by what it holds" in first
    assert Checkpointer(tmp_path).newest() is None
    assert two.run(scenes.save, tmp_path, {"table": value}, {"compare_replicas": False}) == [None, None]


def test_what_does_not_fit_one_rank_is_refused_on_all(two: Ranks, tmp_path: Path) -> None:
    two.run(scenes.save, tmp_path, {"a": 1}, {"fingerprint": "x"})
    for words in two.run(scenes.load, tmp_path, {"a": 0}, {"fingerprint": "y"}):
        assert "rank 0: " in words
        assert "rank 1: " in words
        assert "is of 'x' and this is 'y'" in words


def test_all_ranks_pass_over_what_is_damaged_for_one(two: Ranks, tmp_path: Path) -> None:
    state = {"a": 1, "t": torch.zeros(1000)}
    for _ in range(2):
        assert two.run(scenes.save, tmp_path, state, {}) == [None, None]
    newest = max(tmp_path.iterdir())
    data = sorted(newest.glob("*.distcp"))[-1]
    content = bytearray(data.read_bytes())
    content[-1] ^= 1
    data.write_bytes(content)
    for rank, (_, _, found, _) in enumerate(two.run(_found, tmp_path, state)):
        assert found.path.name == min(path.name for path in tmp_path.iterdir()), rank
        assert data.name in found.passed_over[0]


def _found(rank: int, world: int, folder: Path, state: dict[str, Any]) -> Any:
    return None, None, Checkpointer(folder).load(state), None


def test_what_was_loaded_before_the_ranks_joined_is_agreed_on(two: Ranks, tmp_path: Path) -> None:
    two.run(scenes.save, tmp_path, {"a": torch.ones(3), "step": 3}, {})
    for rank in range(2):
        early: dict[str, Any] = {"a": torch.zeros(3), "step": 0}
        checkpointer = Checkpointer(tmp_path, rank=rank, world=2)
        assert checkpointer.load(early) is not None
        assert early["step"] == 3
        with pytest.raises(CheckpointError, match=r"call agree\(\) before save\(\)"):
            checkpointer.save(early, step=4, position=4)
    for refused, step, values in two.run(scenes.agree, tmp_path):
        assert "call agree() before save()" in refused
        assert (step, values) == (3, [1.0, 1.0, 1.0])


def test_a_full_disk_on_one_rank_costs_all_the_same_checkpoint(two: Ranks, tmp_path: Path) -> None:
    for first, second in two.run(scenes.save_on_a_full_disk, tmp_path):
        assert "the checkpoint of step 2 was not saved: rank 1: OSError" in first
        assert second is None
    found = Checkpointer(tmp_path).newest()
    assert found is not None
    assert found.step == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_all_ranks_skip_a_save_if_one_is_busy(two: Ranks, tmp_path: Path) -> None:
    assert two.run(scenes.skip_while_busy, tmp_path) == [([False, True], True)] * 2


@pytest.mark.parametrize(
    ("dead", "stage", "left"),
    [(1, "staged", 3), (1, "writing", 3), (0, "metadata_rename", 3), (0, "marker_rename", 3), (0, "durable", 5)],
)
def test_a_rank_that_dies_while_saving_leaves_what_is_whole(tmp_path: Path, dead: int, stage: str, left: int) -> None:
    """Rank 0 writes what makes it one checkpoint, and the marker; from then on it is there, whoever dies."""
    ranks = Ranks(2, tmp_path / "store")
    try:
        folder = tmp_path / "checkpoints"
        ranks.run(scenes.train_and_save, folder, 3, 0)
        error = ranks.run(scenes.die_while_saving, folder, dead, stage, dead=(dead,))[1 - dead]
        assert "the checkpoint of step 5 was not saved" in error
    finally:
        ranks.close()
    found = Checkpointer(folder).newest()
    assert found is not None
    assert found.step == left
