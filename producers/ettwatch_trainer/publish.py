"""The short publish step: the trained model exported for inference, checked, and put in place atomically."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch

from ettwatch_trainer.model import Dlrm
from ettwatch_trainer.stream import Batch

MODEL_FILE = "model.pt2"


class PublishError(Exception):
    """The exported model does not score as the trained one does; nothing was published."""


def publish(model: Dlrm, sample: Batch, folder: Path, *, step: int, position: int) -> Path:
    """Export `model`, check it on `sample`, and return the new folder `step-…`: `model.pt2` and `about.json`.

    The folder appears under its name only when it is complete. Raises PublishError if the check fails.
    """
    final = folder / f"step-{step:08d}"
    building = folder / f".{final.name}.tmp"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    model.eval()
    inputs = (sample.dense, sample.ids)
    anything = torch.export.Dim("samples", min=2)
    exported = torch.export.export(model, inputs, dynamic_shapes=({0: anything}, {0: anything}))
    torch.export.save(exported, building / MODEL_FILE)
    with torch.no_grad():
        # Not `model(…)`: where that is compiled, one batch would cost a compilation.
        wanted = model.forward(*inputs)
        found = torch.export.load(building / MODEL_FILE).module()(*inputs)
    if not torch.allclose(wanted, found, atol=1e-5):
        raise PublishError(f"the exported model differs by up to {(wanted - found).abs().max().item():.2g}")
    about = {"step": step, "position": position, "inputs": ["dense", "ids"], "output": "logit of a click"}
    (building / "about.json").write_text(json.dumps(about, indent=2) + "\n")
    shutil.rmtree(final, ignore_errors=True)
    building.rename(final)
    return final
