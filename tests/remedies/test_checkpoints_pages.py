"""The code on the pages about checkpoints, publishing and recovery runs as it is printed there."""

from __future__ import annotations

import doctest
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import ettwatch
from ettwatch_trainer.remedies.checkpoints import Checkpointer
from ettwatch_trainer.remedies.publishing import Inference, publish_here
from support.checkpoint_factories import INPUTS, Scorer

pytestmark = pytest.mark.torch

PAGES = Path(__file__).resolve().parents[2] / "docs" / "remedies"


def blocks(page: str) -> list[str]:
    """The Python on a page that is no dialogue."""
    found = re.findall(r"^```python\n(.*?)^```", (PAGES / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [block for block in found if not block.startswith(">>>")]


def test_the_trainer_with_checkpoints_goes_on_where_it_was(tmp_path: Path) -> None:
    (block,) = blocks("checkpoints.md")

    def trained(folder: Path, *ends: int) -> dict[str, torch.Tensor]:
        for end in ends:
            torch.manual_seed(1)
            model = torch.nn.Linear(3, 1)

            def train_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, data: dict[str, int]) -> None:
                optimizer.zero_grad()
                torch.autograd.backward(model(torch.randn(4, 3)).square().mean())
                optimizer.step()
                data["position"] += 4

            names: dict[str, Any] = {"model": model, "optimizer": torch.optim.Adam(model.parameters())}
            names |= {"folder": folder, "recorder": ettwatch.get(), "steps": end, "train_step": train_step}
            exec(block, names)
            assert names["state"]["data"] == {"position": end * 4}
        return dict(model.state_dict())

    undisturbed, disturbed = trained(tmp_path / "a", 250), trained(tmp_path / "b", 130, 250)
    assert all(torch.equal(undisturbed[name], disturbed[name]) for name in undisturbed)


def test_the_trainer_hands_over_and_the_factory_makes_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, factory = blocks("publishing.md")
    (tmp_path / "my_models").mkdir()
    head = "import torch\nfrom support.checkpoint_factories import INPUTS, Scorer as One\n"
    head += "Scorer = lambda hidden: One()\n(example,) = INPUTS\n"
    (tmp_path / "my_models" / "scoring.py").write_text(head + factory)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("ettwatch_trainer.remedies.publishing.handing.start_publisher", lambda request: 0)
    model = Scorer()
    checkpointer = Checkpointer(tmp_path / "checkpoints")
    names: dict[str, Any] = {"checkpointer": checkpointer, "state": {"model": model}, "step": 3, "position": 30}
    names |= {"rank": 0, "models": tmp_path / "models", "recorder": ettwatch.get()}
    exec(trainer, names)
    published = publish_here(names["request"])
    found = torch.export.load(published / "model.pt2").module()(*INPUTS)
    assert torch.allclose(found, model(*INPUTS))
    assert isinstance(sys.modules["my_models.scoring"].scorer(4), Inference)


def test_the_trainer_with_a_schedule_saves(tmp_path: Path) -> None:
    (block,) = blocks("recovery.md")
    checkpointer = Checkpointer(tmp_path)
    names: dict[str, Any] = {"checkpointer": checkpointer, "state": {"a": 1}, "folder": tmp_path, "rank": 0, "batch": 4}
    names |= {"step": 0, "steps": 60, "train_step": lambda: None}
    exec(block.replace("minimum_s=30, maximum_s=3600", "minimum_s=0.000001, maximum_s=0.000001"), names)
    checkpointer.close()
    assert checkpointer.newest() is not None
    book = json.loads((tmp_path / "interval.json").read_text())
    assert len(book["blocking_s"]) == 15
    assert book["durable_after_s"], "how long saves take to be safe is not measured"
    assert min(book["durable_after_s"]) > 0


def test_the_dialogues_say_what_is_so() -> None:
    text = (PAGES / "recovery.md").read_text(encoding="utf-8").replace("```", "\n")
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, "recovery.md", "recovery.md", 0))
    assert (runner.failures, runner.tries > 5) == (0, True)
