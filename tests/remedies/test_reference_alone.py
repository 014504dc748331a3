"""Each remedy by itself: what is trained is the same as without it, also in an attempt that goes on from a save."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from ettwatch_trainer.reference.launch import environment
from ettwatch_trainer.remedies.checkpoints import Checkpointer, read_state
from support.remedies_losses import losses

pytestmark = [pytest.mark.torch, pytest.mark.slow]

ALONE = ("communication", "overlap", "async_checkpoints", "cheap_recovery")
TOGETHER = "+".join(ALONE)
ENGINES = (
    "plain",
    pytest.param("torchrec", marks=pytest.mark.skipif(find_spec("torchrec") is None, reason="there is no TorchRec")),
)


def trained(out: Path, engine: str, *names: str) -> Path:
    argv = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    argv += ["--nproc-per-node", "2", str(Path(__file__).with_name("alone.py")), str(out), engine, *names]
    env = {**os.environ, **environment(), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return out


def state(out: Path) -> dict[str, torch.Tensor]:
    with Checkpointer(out / "checkpoints", rank=0, world=1) as shelf:
        found = shelf.newest()
    assert found is not None
    assert found.step == 24
    parts = {part: read_state(found.path, entry=part) for part in ("model", "optimizer")}
    return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """All runs by one engine, made when they are first asked for."""

    @cache
    def of(engine: str) -> Path:
        return trained(tmp_path_factory.mktemp(engine), engine, "undisturbed", "none", *ALONE, TOGETHER)

    return of


@pytest.fixture(params=ENGINES)
def runs(request: pytest.FixtureRequest, made: Callable[[str], Path]) -> Path:
    return made(request.param)


@pytest.mark.parametrize("name", ["none", *ALONE, TOGETHER])
def test_the_same_is_trained_bit_by_bit(runs: Path, name: str) -> None:
    wanted, told = losses(runs / "undisturbed"), losses(runs / name)
    assert len(wanted) == 2 * 24
    assert told == wanted  # a set of one: what was done again came out the same
    assert len(list((runs / name / "losses").iterdir())) == 4  # two attempts of two ranks
    one, other = state(runs / "undisturbed"), state(runs / name)
    assert one.keys() == other.keys()
    assert {name for name in one if not torch.equal(one[name], other[name])} == set()


def test_metadata_of_tables_is_one_broadcast(runs: Path) -> None:
    """Without the remedy a gather of each table, as an object, and with TorchRec the plan of its planner."""
    asked = json.loads((runs / "asked.json").read_text())
    planner = 2 if runs.name.startswith("torchrec") else 0
    assert asked["none"] == 2 * 6 + planner
    assert asked["communication"] == asked[TOGETHER] == 1


@pytest.mark.skipif(find_spec("torchrec") is None, reason="there is no TorchRec")
def test_torchrec_trains_what_plain_torch_does(made: Callable[[str], Path]) -> None:
    """Within 1e-5, and saves the same: either goes on from what the other left."""
    folders = [made(engine) / "undisturbed" for engine in ("plain", "torchrec")]
    plain, other = map(losses, folders)
    assert plain.keys() == other.keys()
    for place, values in plain.items():
        assert sorted(other[place]) == pytest.approx(sorted(values), rel=1e-5)
    one, two = map(state, folders)
    assert one.keys() == two.keys()
    assert all(torch.allclose(one[name], two[name], rtol=1e-5, atol=1e-7) for name in one)
