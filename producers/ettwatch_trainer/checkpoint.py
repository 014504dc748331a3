"""Checkpoints in one folder: written atomically, checked when read, the newest whole one found.

A file is one line of JSON (step, position, length and SHA-256 of the rest, and what model it is of), then what
`torch.save` wrote. It gets its final name only when every byte is on disk, so a job that is killed in the middle leaves
a `.tmp` file, which nobody reads and the next save removes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


class CheckpointError(Exception):
    """A checkpoint cannot be used. The text says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One durable checkpoint: `position` is the number of samples trained on, `size` is in bytes."""

    path: Path
    step: int
    position: int
    size: int


def save(folder: Path, state: Mapping[str, Any], *, step: int, position: int, model: str, keep: int = 2) -> Checkpoint:
    """Write a checkpoint and return when it is durable; then remove all but the `keep` newest.

    Raises OSError if it cannot be written; the older ones are then still there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    body = io.BytesIO()
    torch.save(dict(state), body)
    payload = body.getbuffer()
    head = {"step": step, "position": position, "model": model, "bytes": len(payload), "sha256": _digest(payload)}
    path = folder / f"step-{step:08d}.ckpt"
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("wb") as file:
        file.write(json.dumps(head).encode() + b"\n")
        file.write(payload)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    _sync_folder(folder)
    _tidy(folder, keep)
    return Checkpoint(path, step, position, path.stat().st_size)


def newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint in the folder that is whole; damaged ones are passed over. None if there is none."""
    for path in sorted(folder.glob("step-*.ckpt"), reverse=True):
        try:
            head, _ = _read(path)
        except CheckpointError:
            continue
        return Checkpoint(path, head["step"], head["position"], path.stat().st_size)
    return None


def load(checkpoint: Checkpoint, *, model: str) -> dict[str, Any]:
    """The state that was saved. Raises CheckpointError if it is damaged or of another model."""
    head, payload = _read(checkpoint.path)
    if head["model"] != model:
        raise CheckpointError(
            f"{checkpoint.path} is of another model ({head['model']}, not {model}); "
            "give another --out, or the settings it was made with"
        )
    state: dict[str, Any] = torch.load(io.BytesIO(payload), weights_only=True)
    return state


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    line, _, payload = path.read_bytes().partition(b"\n")
    try:
        head: dict[str, Any] = json.loads(line)
        whole = head["bytes"] == len(payload) and head["sha256"] == _digest(payload)
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise CheckpointError(f"{path} is damaged; remove it, an older one will be taken")
    return head, payload


def _digest(payload: bytes | memoryview) -> str:
    return hashlib.sha256(payload).hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _tidy(folder: Path, keep: int) -> None:
    for path in sorted(folder.glob("step-*.ckpt"))[:-keep]:
        path.unlink()
    for path in folder.glob("step-*.tmp"):
        path.unlink()
