"""From a checkpoint to a folder that a server can load: export, check, put in place."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ettwatch_trainer.remedies.checkpoints import CheckpointError, read_state
from ettwatch_trainer.remedies.publishing.inference import Inference
from ettwatch_trainer.remedies.publishing.request import FOLDER, PublishError, Request

MODEL, COMPILED, ABOUT, CURRENT = "model.pt2", "model.aot.pt2", "about.json", "current"


def published(request: Request) -> Path | None:
    """The folder that this request was published as, if it was."""
    final = request.out / request.name
    return final if (final / ABOUT).exists() else None


def prepare(request: Request) -> Inference:
    """The model of the request with the weights of its checkpoint. Raises PublishError where they do not fit."""
    module, _, function = request.factory.partition(":")
    try:
        made = getattr(importlib.import_module(module), function)(**request.arguments)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise PublishError(f"the factory {request.factory} failed: {error!r}") from error
    if not isinstance(made, Inference):
        raise PublishError(f"the factory {request.factory} returned a {type(made).__name__}; return an Inference")
    try:
        weights = read_state(request.checkpoint, request.entry)
        made.model.load_state_dict(weights if made.adapt is None else made.adapt(weights))
    except (CheckpointError, RuntimeError, KeyError, TypeError) as error:
        raise PublishError(f"the weights of {request.checkpoint} do not fit the model: {error}") from error
    made.model.eval()
    return made


def build(request: Request, made: Inference, at: Callable[[str], None]) -> Path:
    """Export into a folder beside the final one, and check that. Raises PublishError if it scores differently."""
    building = request.out / f".{request.name}.tmp"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    at("export")
    try:
        exported = torch.export.export(made.model, made.inputs, dynamic_shapes=made.dynamic_shapes)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise PublishError(f"the model cannot be exported: {error}") from error
    torch.export.save(exported, building / MODEL)
    at("exported")
    # What is checked is what was written, as a server will load it.
    found = torch.export.load(building / MODEL)
    _same_weights(made.model.state_dict(), found.state_dict)
    _same_answers(request, made, found.module(), MODEL)
    if request.aot:
        _compile(request, made, exported, building)
    return building


def put(request: Request, building: Path, at: Callable[[str], None]) -> Path:
    """Let the built folder appear under its name, and `current` lead to it if it is the newest."""
    files = sorted(path for path in building.iterdir() if path.name != ABOUT)
    about = {
        "request": request.id,
        "step": request.step,
        "position": request.position,
        "checkpoint": request.checkpoint.name,
        "torch": torch.__version__,
        "sha256": {path.name: _digest(path) for path in files},
    }
    (building / ABOUT).write_text(json.dumps(about, indent=2) + "\n")
    for path in [*files, building / ABOUT, building]:
        _sync(path)
    at("publish")
    final = request.out / request.name
    building.rename(final)
    _sync(request.out)
    at("published")
    point(request.out)
    return final


def point(out: Path) -> None:
    """Let `current` lead to the published folder of the highest step; readers see the old one or the new one."""
    with (out / FOLDER / f"{CURRENT}.lock").open("w") as file:
        # Of two publishers the slower one must not put back what it saw before.
        fcntl.flock(file, fcntl.LOCK_EX)
        found = [path for path in out.glob("step-*") if (path / ABOUT).exists()]
        newest = max(found, key=lambda path: (_step(path), (path / ABOUT).stat().st_mtime_ns))
        link = out / f".{CURRENT}.tmp"
        link.unlink(missing_ok=True)
        link.symlink_to(newest.name)
        link.replace(out / CURRENT)
        _sync(out)


def _compile(request: Request, made: Inference, exported: Any, building: Path) -> None:
    inductor = importlib.import_module("torch._inductor")
    inductor.aoti_compile_and_package(exported, package_path=str(building / COMPILED))
    _same_answers(request, made, inductor.aoti_load_package(str(building / COMPILED)), COMPILED)


def _same_weights(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    for name, tensor in wanted.items():
        if name in found and not _equal(tensor, found[name]):
            raise PublishError(f"the exported weights {name!r} are not those of the checkpoint; nothing was published")


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one.nan_to_num(), other.nan_to_num())


@torch.no_grad()
def _same_answers(request: Request, made: Inference, scorer: Callable[..., Any], name: str) -> None:
    wanted, found = made.model(*made.inputs), scorer(*made.inputs)
    try:
        torch.testing.assert_close(found, wanted, rtol=request.tolerance, atol=request.tolerance, equal_nan=True)
    except AssertionError as error:
        raise PublishError(f"{name} does not score as the checkpoint does; nothing was published. {error}") from error


def _step(path: Path) -> int:
    try:
        return int(json.loads((path / ABOUT).read_bytes())["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
