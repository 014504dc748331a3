"""Killed in every stage of a save: the newest durable checkpoint is found whole, and the run goes on from it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ettwatch_trainer.remedies.checkpoints import Checkpointer
from support.checkpoint_killed import DEATHS
from support.checkpoint_models import Small, same, undisturbed

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As the children had: another number of threads adds up in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the children that died have left their checkpoints."""
    folder = tmp_path_factory.mktemp("killed")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    argv = [sys.executable, "-m", "support.checkpoint_killed", str(folder)]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout)
    assert set(ends.values()) == {-signal.SIGKILL}
    return folder


@pytest.mark.parametrize(("mode", "stage"), DEATHS)
def test_what_was_durable_is_found_whole_and_gone_on_from(killed: Path, mode: str, stage: str) -> None:
    folder = killed / f"{mode}-{stage}"
    there = Checkpointer(folder, mode="blocking", keep=2)
    losses, end = undisturbed(Small, 14)
    small = Small(seed=5)
    found = there.load(small.state)
    assert found is not None
    assert found.step == (9 if stage in ("durable", "retention") else 6)
    assert found.passed_over == ()
    small.step = found.step
    assert small.train(14 - found.step) == losses[found.step :]
    assert same(small.everything(), end)
    assert there.save(small.state, step=14, position=14).ok()
    left = sorted(path.name for path in folder.iterdir())
    assert len(left) == 2, "leftovers are gone, and what is kept is kept"
