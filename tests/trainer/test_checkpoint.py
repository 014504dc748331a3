import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ettwatch_trainer import checkpoint

pytestmark = pytest.mark.torch


def state(value: float) -> dict[str, object]:
    return {"model": {"w": torch.full((500,), value)}, "optimizer": {"state": {}, "lr": value}}


def save(folder: Path, step: int, keep: int = 2) -> checkpoint.Checkpoint:
    return checkpoint.save(folder, state(step), step=step, position=step * 64, model="m", keep=keep)


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    saved = save(tmp_path / "new" / "folder", 10)
    assert saved.size == saved.path.stat().st_size
    assert checkpoint.newest(saved.path.parent) == saved
    assert (saved.step, saved.position) == (10, 640)
    back = checkpoint.load(saved, model="m")
    assert torch.equal(back["model"]["w"], torch.full((500,), 10.0))
    assert back["optimizer"]["lr"] == 10


def test_there_is_none_in_an_empty_or_missing_folder(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path) is None
    assert checkpoint.newest(tmp_path / "missing") is None


@pytest.mark.parametrize("left", [0, 1, 40, 300, -1])
def test_a_truncated_checkpoint_is_passed_over(tmp_path: Path, left: int) -> None:
    older, newer = save(tmp_path, 10), save(tmp_path, 20)
    whole = newer.path.read_bytes()
    newer.path.write_bytes(whole[:left])
    assert checkpoint.newest(tmp_path) == older
    with pytest.raises(checkpoint.CheckpointError, match=r"step-00000020\.ckpt is damaged"):
        checkpoint.load(newer, model="m")


def test_one_flipped_bit_is_seen(tmp_path: Path) -> None:
    saved = save(tmp_path, 10)
    content = bytearray(saved.path.read_bytes())
    content[-200] ^= 1
    saved.path.write_bytes(content)
    assert checkpoint.newest(tmp_path) is None


def test_a_save_that_is_killed_half_way_leaves_the_one_before(tmp_path: Path) -> None:
    older = save(tmp_path, 10)
    # Killed at the moment where every byte is written, but the file has not got its name.
    script = f"""
import os, signal, torch
from pathlib import Path
from ettwatch_trainer import checkpoint
Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)
checkpoint.save(Path({str(tmp_path)!r}), {{"model": torch.ones(9)}}, step=20, position=1280, model="m")
"""
    done = subprocess.run([sys.executable, "-c", script], env=dict(os.environ))
    assert done.returncode == -9
    assert [path.name for path in tmp_path.glob("*.tmp")] == ["step-00000020.tmp"]
    assert checkpoint.newest(tmp_path) == older
    save(tmp_path, 30)
    assert list(tmp_path.glob("*.tmp")) == []


def test_a_disk_that_is_full_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = save(tmp_path, 10)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path, 20)
    assert checkpoint.newest(tmp_path) == older


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (10, 20, 100, 30):
        save(tmp_path, step, keep=2)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["step-00000030.ckpt", "step-00000100.ckpt"]


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    saved = save(tmp_path, 10)
    with pytest.raises(checkpoint.CheckpointError, match=r"is of another model \(m, not n\); give another --out"):
        checkpoint.load(saved, model="n")
