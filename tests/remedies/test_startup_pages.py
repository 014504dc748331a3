"""The code on the pages of the start-up remedies runs as it stands there."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from support.remedies_recorder import Told

pytestmark = pytest.mark.torch

PAGES = Path(__file__).parents[2] / "docs/remedies"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What a reader's trainer has: a model, data, a recorder, one rank. Compiled without code being built."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "unused")
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    told = Told()
    recorder: Any = told.recorder
    recorder.rank = 0

    def build_model() -> torch.nn.Module:
        model = Net()
        model.compile()
        return model

    def compile_or_step(model: torch.nn.Module) -> None:
        Path("inductor").mkdir(exist_ok=True)
        (Path("inductor") / "kernel.so").write_bytes(b"built")

    yield {
        "rec": recorder,
        "model": build_model(),
        "batch": torch.ones(4, 3),
        "loader": [torch.ones(size, 3) for size in (4, 5, 6)],
        "train_step": lambda model, batch: torch.autograd.backward(model(batch).sum()),
        "build_model": build_model,
        "join_groups": dist.barrier,
        "read_checkpoint": Net().state_dict,
        "first_batch": lambda: torch.ones(4, 3),
        "synthetic_batch": lambda: [torch.zeros(4, 3)],
        "resume": lambda model, weights: model.load_state_dict(weights),
        "compile_or_step": compile_or_step,
    }
    dist.destroy_process_group()
    torch.compiler.reset()


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layer(x)
        return result


def run(page: str, stage: dict[str, Any]) -> dict[str, Any]:
    (block,) = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip()]) <= 15, "about ten lines were promised"
    exec(compile(block, page, "exec"), stage)
    return stage


def phases(stage: dict[str, Any]) -> list[str]:
    return [phase.name for phase in stage["rec"].phases]


def test_communication(stage: dict[str, Any]) -> None:
    assert run("communication", stage)["mine"] == ["users", "items"]
    assert list(stage["metadata"]) == ["users", "items"]


def test_startup(stage: dict[str, Any]) -> None:
    assert run("startup", stage)["batch"].shape == (4, 3)
    assert sorted(phases(stage)) == [
        "trainer_init.checkpoint_load",
        "trainer_init.get_first_batch_data",
        "trainer_init.process_group_init",
        "trainer_init.train_module_creation",
    ]


def test_shapes(stage: dict[str, Any]) -> None:
    run("shapes", stage)
    assert [(mark.source, mark.dim) for mark in stage["watch"].marks().marks] == [("x", 0)]
    assert phases(stage) == ["pt2_compilation.recompile"]
    torch.compiler.reset()
    again = run("shapes", stage)
    assert not again["watch"].recompiles


def test_autotune(stage: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # aot_eager has no options.
    monkeypatch.setattr(torch, "compile", lambda model, options: model)
    assert torch.equal(run("autotune", stage)["scores"], stage["model"](stage["batch"]))
    assert phases(stage) == ["pt2_compilation.autotune"]
    assert Path("kernels.json").exists()


def test_caches(stage: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "save_cache_artifacts", lambda: None)
    assert not run("caches", stage)["loaded"].hit
    assert stage["saved"].saved, stage["saved"].reason
    assert run("caches", stage)["loaded"].hit
    assert phases(stage) == ["pt2_compilation.cache_load"] * 2
