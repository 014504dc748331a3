"""Saving and going on, in one process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import ettwatch
from ettwatch_trainer.remedies.checkpoints import (
    Checkpointer,
    CheckpointError,
    Local,
    read_state,
)
from support.checkpoint_models import Small, same, undisturbed

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """What is this small only waits for more of them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def big(mb: float = 4.0) -> dict[str, Any]:
    """A state of so many million bytes."""
    return {"weights": torch.arange(int(mb * 250_000), dtype=torch.float32)}


class Held:
    """For `at`: what is being written is held until it may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()

    def __call__(self, stage: str) -> None:
        if stage == "writing":
            assert self.may_go_on.wait(60)


@pytest.mark.parametrize("mode", ["async", "blocking"])
def test_a_resumed_run_equals_an_undisturbed_one_bit_by_bit(tmp_path: Path, mode: Any) -> None:
    losses, end = undisturbed(Small, 20)
    first = Small()
    with Checkpointer(tmp_path, mode=mode) as checkpointer:
        assert checkpointer.load(first.state) is None
        assert first.train(8) == losses[:8]
        saving = checkpointer.save(first.state, step=8, position=128)
        assert first.train(5) == losses[8:13]  # goes on while it is saved, and is lost then
        assert saving.ok()
    second = Small(seed=99)
    state = second.state
    found = Checkpointer(tmp_path).load(state)
    assert found is not None
    assert (found.step, found.position, found.world, found.resharded) == (8, 128, 1, False)
    assert state["data"] == {"at": 8}
    assert second.train(12) == losses[8:]
    assert same(second.everything(), end)


def test_saving_changes_nothing_in_the_training(tmp_path: Path) -> None:
    losses, end = undisturbed(Small, 6)
    watched = Small()
    with Checkpointer(tmp_path) as checkpointer:
        found = []
        for step in range(6):
            found += watched.train(1)
            checkpointer.save(watched.state, step=step, position=step)
    assert found == losses
    assert same(watched.everything(), end)


def test_an_asynchronous_save_does_not_block(tmp_path: Path) -> None:
    state, moment = big(6), torch.arange(1_500_000, dtype=torch.float32)
    held = Held()
    with Checkpointer(tmp_path, storage_mb_s=4, at=held) as checkpointer:
        saving = checkpointer.save(state, step=1, position=1)  # it returns, and most is not written yet
        assert not saving.durable.done()
        assert checkpointer.newest() is None
        state["weights"].zero_()  # training goes on
        held.may_go_on.set()
        found = saving.durable.result(60)
    assert found.durable_after_s > 1.4
    assert saving.blocking_s < found.durable_after_s - 1.0
    there = {"weights": torch.zeros(1_500_000)}
    Checkpointer(tmp_path).load(there)
    assert torch.equal(there["weights"], moment)


def test_a_blocking_save_returns_when_it_is_durable(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, mode="blocking", storage_mb_s=8)
    saving = checkpointer.save(big(4), step=1, position=1)
    assert saving.durable.done()
    assert saving.blocking_s > 0.45
    assert checkpointer.newest() is not None


def test_at_most_one_save_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way, most, lock = 0, 0, threading.Lock()
    second_waits = threading.Event()

    def at(stage: str) -> None:
        nonlocal under_way, most
        with lock:
            under_way += {"writing": 1, "durable": -1}.get(stage, 0)
            most = max(most, under_way)
        if stage == "writing":
            assert second_waits.wait(60)
            time.sleep(0.2)

    with Checkpointer(tmp_path, at=at) as checkpointer:
        first = checkpointer.save(big(), step=1, position=1)
        wait = checkpointer.wait

        def waits(timeout_s: float | None = None) -> bool:
            second_waits.set()
            return wait(timeout_s)

        monkeypatch.setattr(checkpointer, "wait", waits)
        second = checkpointer.save(big(), step=2, position=2)
        assert first.durable.done()
        assert second.waited_s > 0.1
        assert second.waited_s <= second.blocking_s
        assert second.ok()
    assert most == 1


def test_a_save_can_be_skipped_while_one_is_under_way(tmp_path: Path) -> None:
    held = Held()
    with Checkpointer(tmp_path, when_busy="skip", at=held) as checkpointer:
        first = checkpointer.save(big(), step=1, position=1)
        second = checkpointer.save(big(), step=2, position=2)
        assert second.skipped
        assert second.waited_s == 0
        assert not first.durable.done()
        held.may_go_on.set()
        assert second.error() == "step 2: not saved, an earlier save was still under way"
        assert first.ok()
        assert checkpointer.save(big(), step=3, position=3).ok()
    found = Checkpointer(tmp_path).newest()
    assert found is not None
    assert found.step == 3


def test_the_newest_is_the_one_saved_last_even_after_going_back(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, mode="blocking")
    for step in (100, 40):
        assert checkpointer.save({"a": step}, step=step, position=step).ok()
    state: dict[str, Any] = {"a": None}
    assert checkpointer.load(state) is not None
    assert state == {"a": 40}


def test_what_does_not_fit_is_refused_with_the_reason(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, mode="blocking", fingerprint="narrow", rng=False)
    checkpointer.save({"model": torch.nn.Linear(2, 3)}, step=1, position=1)
    other = Checkpointer(tmp_path, fingerprint="wide")
    with pytest.raises(CheckpointError, match="is of 'narrow' and this is 'wide'; give another folder"):
        other.load({"model": torch.nn.Linear(2, 3)})
    with pytest.raises(CheckpointError, match=r"'model/weight' is torch.float32 \(3, 2\) there and .* \(4, 2\) here"):
        checkpointer.load({"model": torch.nn.Linear(2, 4)})
    with pytest.raises(CheckpointError, match="torch.float32 .* there and torch.float64"):
        checkpointer.load({"model": torch.nn.Linear(2, 3).double()})
    with pytest.raises(CheckpointError, match="'model' does not take what was saved: .*Missing key"):
        checkpointer.load({"model": torch.nn.Sequential(torch.nn.Linear(2, 3))})
    with pytest.raises(CheckpointError, match="has no 'head'"):
        checkpointer.load({"head": 1})


def test_an_optimizer_of_a_parameter_that_nobody_names_is_refused(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*model.parameters(), torch.nn.Parameter(torch.zeros(7))])
    with pytest.raises(CheckpointError, match=r"'optimizer' steps a parameter of shape \(7,\) that no module"):
        Checkpointer(tmp_path).save({"model": model, "optimizer": optimizer}, step=1, position=1)
    assert Checkpointer(tmp_path, mode="blocking").save({"o": Local(optimizer)}, step=1, position=1).ok()


def test_an_optimizer_finds_its_parameters_again_in_another_order(tmp_path: Path) -> None:
    first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    model = torch.nn.Sequential(first, second)
    groups: list[dict[str, Any]] = [{"params": first.parameters(), "lr": 0.5}, {"params": second.parameters()}]
    optimizer = torch.optim.Adam(groups)
    torch.autograd.backward(model(torch.ones(2, 3)).sum())
    optimizer.step()
    assert Checkpointer(tmp_path, mode="blocking").save({"m": model, "o": optimizer}, step=1, position=1).ok()
    third, fourth = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    other = torch.nn.Sequential(third, fourth)
    turned = torch.optim.Adam([{"params": fourth.parameters()}, {"params": third.parameters()}])
    Checkpointer(tmp_path).load({"m": other, "o": turned})
    assert [group["lr"] for group in turned.param_groups] == [0.001, 0.5]
    assert torch.equal(turned.state[fourth.weight]["exp_avg"], optimizer.state[second.weight]["exp_avg"])
    one_group = torch.optim.Adam(other.parameters())
    with pytest.raises(CheckpointError, match="one group now had different options"):
        Checkpointer(tmp_path).load({"m": other, "o": one_group})


def test_values_that_only_code_could_bring_back_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="the state has a pathlib.* at 'data/where'; give tensors, plain"):
        Checkpointer(tmp_path).save({"data": {"where": tmp_path}}, step=1, position=1)


def test_the_whole_state_can_be_read_without_a_model(tmp_path: Path) -> None:
    small = Small()
    small.train(2)
    with Checkpointer(tmp_path) as checkpointer:
        found = checkpointer.save({**small.state, "mine": Local({"a": 1})}, step=2, position=32).durable.result(60)
    state = read_state(found.path)
    assert sorted(state) == ["data", "model", "optimizer", "schedule"]  # nothing that is of one rank
    assert same(read_state(found.path, "model"), dict(small.model.state_dict()))
    with pytest.raises(CheckpointError, match="has no part 'head'; it has data, model, optimizer, schedule"):
        read_state(found.path, "head")


def test_ettwatch_is_told_of_the_part_that_blocks_and_of_when_it_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETTWATCH_SPOOL", str(tmp_path / "spool"))
    with ettwatch.init(job="j") as recorder:
        held = Held()
        checkpointer = Checkpointer(tmp_path / "checkpoints", recorder=recorder, storage_mb_s=10, at=held)
        with recorder.training(position=0):
            for step in (1, 2, 3):  # on a machine that is busy a part of one takes long
                recorder.step(64)
                held.may_go_on.clear()
                saving = checkpointer.save(big(), step=step, position=64 * step)
                held.may_go_on.set()
                found = saving.durable.result(60)
            recorder.step(64)
        time.sleep(0.01)
        checkpointer.load(big())
    events = [
        json.loads(line) for path in (tmp_path / "spool").glob("*.jsonl") for line in path.read_text().splitlines()
    ]
    spans = {event["span"]: event for event in events if event["kind"] == "phase_started"}
    ends = {event["span"]: event["ts"] for event in events if event["kind"] == "phase_ended"}
    assert {event["phase"] for event in spans.values()} == {
        "wasted_training.checkpoint_save",
        "wasted_training.checkpoint_upload",
        "trainer_init.checkpoint_load",
    }
    durable = [event for event in events if event["kind"] == "checkpoint_durable"]
    assert [(event["position"], event["step"]) for event in durable] == [(64, 1), (128, 2), (192, 3)]
    assert durable[-1]["bytes"] == found.bytes
    saves = [event for event in spans.values() if event["phase"] == "wasted_training.checkpoint_save"]
    assert all(event["background"] is True for event in spans.values() if event["phase"].endswith("checkpoint_upload"))
    shares = []
    for save, safe in zip(saves, durable, strict=True):
        assert safe["ts"] > ends[save["span"]]
        shares.append((ends[save["span"]] - save["ts"]) / (safe["ts"] - safe["started_ts"]))
    assert min(shares) < 1 / 3


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"keep": 0}, "keep: 0 would leave nothing"),
        ({"mode": "fast"}, "mode 'fast'"),
        ({"when_busy": "fail"}, "when_busy 'fail'"),
        ({"on_world_change": "ask"}, "on_world_change 'ask'"),
        ({"storage_mb_s": 0}, "storage_mb_s: 0 is no speed"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Checkpointer(tmp_path, **settings)
