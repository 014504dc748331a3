"""Restarting only what failed, under a real torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ettwatch_trainer.remedies.recovery import Attempt, restart_command
from support.checkpoint_elastic import SAVED, STEPS
from support.checkpoint_models import same
from support.checkpoint_ranks import Ranks
from support.checkpoint_scenes import undisturbed_run

pytestmark = pytest.mark.torch


def run(folder: Path, how: str) -> dict[int, dict[str, torch.Tensor]]:
    """Train under torchrun; the weights of each rank at the end."""
    folder.mkdir()
    argv, variables = restart_command(["-m", "support.checkpoint_elastic", str(folder), how], ranks=2, max_restarts=1)
    mine = {name: value for name, value in os.environ.items() if not name.startswith("TORCHELASTIC_")}
    known = os.pathsep.join(place for place in sys.path if place)
    environ = {**mine, **variables, "PYTHONPATH": known, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return {rank: torch.load(folder / f"end-{rank}.pt") for rank in range(2)}


@pytest.mark.slow
def test_a_killed_rank_costs_a_restart_of_the_ranks_and_not_one_bit(tmp_path: Path) -> None:
    disturbed = run(tmp_path / "b", "dies")
    ranks = Ranks(2, tmp_path / "store")
    for rank, (_, undisturbed) in enumerate(ranks.run(undisturbed_run, STEPS)):
        assert same(undisturbed, disturbed[rank])
    ranks.close()
    starts = {path.name: path.read_text().split() for path in (tmp_path / "b").glob("start-*")}
    assert sorted(starts) == ["start-0-0", "start-0-1", "start-1-0", "start-1-1"]
    assert [starts[name][0] for name in sorted(starts)] == ["0", "0", str(SAVED), str(SAVED)]
    assert len({agent for _, agent, _ in starts.values()}) == 1, "the agent was started anew, too"


def test_the_command_says_what_a_restart_needs(tmp_path: Path) -> None:
    argv, variables = restart_command(
        ["train.py", "--fast"], ranks=4, max_restarts=2, compile_cache=tmp_path, python="python"
    )
    assert argv[:3] == ["python", "-m", "torch.distributed.run"]
    assert argv[-2:] == ["train.py", "--fast"]
    assert argv[argv.index("--nproc-per-node") + 1] == "4"
    assert argv[argv.index("--max-restarts") + 1] == "2"
    assert variables["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert variables["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path)
    with pytest.raises(ValueError, match="ranks 0 and max_restarts 3"):
        restart_command([], ranks=0)


def test_an_attempt_knows_itself_and_its_agent() -> None:
    assert Attempt.of({}) == Attempt(0, 1, 0, None)
    assert not Attempt.of({}).orphaned
    told = {"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "3", "TORCHELASTIC_RUN_ID": "x"}
    assert Attempt.of(told) == Attempt(1, 2, 3, os.getppid())
    assert not Attempt.of(told).orphaned
    assert Attempt(parent=-5).orphaned
