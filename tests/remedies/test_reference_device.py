"""The reference trainer on a GPU, as far as that can be seen without one: choices, refusals, and where tensors lie."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from ettwatch_trainer import ConfigError
from ettwatch_trainer.group import PATIENCE, Group
from ettwatch_trainer.reference import ReferenceConfig
from ettwatch_trainer.reference.data import synthetic
from ettwatch_trainer.reference.dense import build_dense
from ettwatch_trainer.reference.engine import NoEngine, rows_like, settled
from ettwatch_trainer.reference.plain_engine import PlainEngine

pytestmark = pytest.mark.torch

TINY = ReferenceConfig(engine="plain", tables=6, rows=50, dim=4, hidden=8, fields=3, compile=False)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Any:
    def there(count: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    return there


@pytest.mark.parametrize(("count", "ranks", "asked", "taken"), [
    (0, 1, "auto", "cpu"),
    (1, 2, "auto", "cpu"),  # NCCL takes no two ranks on one GPU
    (2, 2, "auto", "cuda"),
    (8, 2, "cuda", "cuda"),
    (8, 2, "cpu", "cpu"),
])  # fmt: skip
def test_a_gpu_is_taken_where_each_rank_has_one(gpus: Any, count: int, ranks: int, asked: str, taken: str) -> None:
    gpus(count)
    assert settled(dataclasses.replace(TINY, device=asked), ranks).device == taken


def test_what_cannot_be_is_refused(gpus: Any) -> None:
    gpus(1)
    with pytest.raises(NoEngine, match="finds 1 GPUs for 2 ranks of this host; give --device cpu"):
        settled(dataclasses.replace(TINY, device="cuda"), 2)
    with pytest.raises(NoEngine, match="--engine torchrec: FBGEMM is that for CPUs; give --device cpu"):
        settled(dataclasses.replace(TINY, device="cuda", engine="torchrec"), 1)
    assert settled(dataclasses.replace(TINY, engine="auto"), 1).engine == "plain"
    with pytest.raises(ConfigError, match="--device: there is no 'tpu'"):
        dataclasses.replace(TINY, device="tpu")


def test_between_gpus_ranks_speak_nccl_and_gloo_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda backend, timeout: asked.append(backend))
    group = Group(rank=1, world=2)
    group.join()
    group.on_gpu(1).join()
    assert asked == ["gloo", "cpu:gloo,cuda:nccl"]
    assert group.on_gpu(1).device == torch.device("cuda", 1)
    assert PATIENCE.total_seconds() > 0


def test_everything_of_a_step_lies_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a GPU torch can tell where a result would lie, and refuses to mix places, but computes no gradient.
    monkeypatch.setattr(nn.Module, "to", _moved)
    group = Group().on_gpu(0)
    seen: list[torch.Tensor] = []

    class Enough(Exception):
        pass

    def look(dense: torch.Tensor, rows: torch.Tensor) -> None:
        seen.extend((dense, rows, model(dense, rows)))
        raise Enough

    with FakeTensorMode():
        model = build_dense(TINY).to(group.device)
        engine = PlainEngine(TINY, group, [list(range(TINY.tables))], model, look)
        with pytest.raises(Enough):
            engine.train(synthetic(TINY, 8))
        like = rows_like(TINY, 8, group.device)
    assert {each.device for each in seen} == {group.device}
    assert (like.device, like.shape, like.stride()) == (group.device, seen[1].shape, seen[1].stride())
    kept = {**engine.parts()["model"].state_dict(), **engine.parts()["optimizer"].state_dict()}
    places = {each.device for name, each in kept.items() if not name.startswith("steps.")}
    assert places == {group.device}


def _moved(module: nn.Module, device: torch.device) -> nn.Module:
    """`Module.to`, which cannot exchange the parameters of such tensors in place."""
    for part in module.modules():
        for name, weight in part._parameters.items():
            if weight is not None:
                part._parameters[name] = nn.Parameter(weight.detach().to(device))
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = buffer.to(device)
    return module


def test_the_program_says_so_in_one_line(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "ettwatch_trainer.reference", "--device", "cuda", "--out", str(tmp_path)]
    env = {**os.environ, "ETTWATCH_SPOOL": str(tmp_path / "spool"), "LOCAL_WORLD_SIZE": "1000"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert "--device cuda: torch" in line
    assert "GPUs for 1000 ranks of this host; give --device cpu" in line
