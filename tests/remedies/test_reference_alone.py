"""Each remedy by itself: what is trained is the same as without it, also in an attempt that goes on from a save."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from ettwatch.noop import NoRecorder
from ettwatch_trainer.group import Group
from ettwatch_trainer.reference import ReferenceConfig, job
from ettwatch_trainer.reference.data import Place
from ettwatch_trainer.reference.launch import environment
from ettwatch_trainer.remedies.checkpoints import Checkpointer, CheckpointError, read_state
from support.remedies_losses import losses

pytestmark = [pytest.mark.torch, pytest.mark.slow]

ALONE = ("communication", "overlap", "async_checkpoints", "standalone_publish", "cheap_recovery")
STOP = 15
TOGETHER = "+".join(ALONE)
ENGINES = (
    "plain",
    pytest.param("torchrec", marks=pytest.mark.skipif(find_spec("torchrec") is None, reason="there is no TorchRec")),
)


TINY = ReferenceConfig(
    steps=24,
    batch=32,
    batch_sizes=2,
    ranks=1,
    tables=6,
    rows=50,
    dim=4,
    hidden=8,
    fields=3,
    compile=False,
    engine="plain",
    losses=True,
    publish=False,
)


def trained(out: Path, engine: str, *names: str) -> Path:
    argv = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    argv += ["--nproc-per-node", "2", str(Path(__file__).with_name("alone.py")), str(out), engine, *names]
    env = {**os.environ, **environment(), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return out


def steps(out: Path, attempt: int, rank: int) -> list[int]:
    lines = (out / "losses" / f"attempt-{attempt}-rank-{rank}.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


def state(out: Path, step: int = 24) -> dict[str, torch.Tensor]:
    with Checkpointer(out / "checkpoints", rank=0, world=1) as shelf:
        found = shelf.newest()
    assert found is not None
    assert found.step == step
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
    for rank in range(2):
        first, second = (steps(runs / name, attempt, rank) for attempt in range(2))
        assert first == list(range(1, STOP + 1))
        assert second == list(range(second[0], 25))
        assert 1 < second[0] <= STOP + 1, "it began anew, so nothing is shown of going on"
    one, other = state(runs / "undisturbed"), state(runs / name)
    assert one.keys() == other.keys()
    assert {name for name in one if not torch.equal(one[name], other[name])} == set()


def test_metadata_of_tables_is_one_broadcast(runs: Path) -> None:
    """Without the remedy a gather of each table, as an object, and with TorchRec the plan of its planner."""
    asked = json.loads((runs / "asked.json").read_text())
    planner = 2 if runs.name.startswith("torchrec") else 0
    assert asked["none"] == 2 * 6 + planner
    assert asked["communication"] == asked[TOGETHER] == 1


def test_what_another_process_publishes_is_what_was_trained(runs: Path) -> None:
    deadline = time.monotonic() + 300
    while not (found := list((runs / "standalone_publish" / "inference").glob("step-*/about.json"))):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    published = torch.export.load(found[0].with_name("model.pt2")).state_dict
    trained = state(runs / "undisturbed")
    tables = torch.cat([trained[f"model.tables.table_{number:04d}"] for number in range(6)])
    assert torch.equal(published["weight"], tables)
    dense = {name: value for name, value in published.items() if name.startswith("dense.")}
    assert len(dense) > 8
    assert all(torch.equal(value, trained[f"model.{name}"]) for name, value in dense.items())


@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled:UserWarning")
def test_one_rank_goes_on_with_what_two_have_trained(runs: Path, tmp_path: Path) -> None:
    """Tables and sums of the optimizer are dealt out anew, and no sample is read twice or left out."""
    shutil.copytree(runs / "none" / "checkpoints", tmp_path / "checkpoints")
    config = dataclasses.replace(TINY.only(), out=tmp_path)
    place = job.run(config, NoRecorder(), Group(attempt=1))
    assert place.step == 24
    one, other = state(runs / "none"), state(tmp_path)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    more = job.run(dataclasses.replace(config, steps=30), NoRecorder(), Group(attempt=2))
    assert more == Place(30, place.position + sum(config.size_of(step) for step in range(24, 30)))
    assert steps(tmp_path, 2, 0) == list(range(25, 31))
    assert any(not torch.equal(value, other[name]) for name, value in state(tmp_path, 30).items())
    with pytest.raises(CheckpointError, match="is of 'tables=6x50x4 .* and this is 'tables=7x50x4"):
        job.run(dataclasses.replace(config, tables=7), NoRecorder(), Group(attempt=3))


def test_no_group_is_made_but_that_of_checkpoints(made: Callable[[str], Path]) -> None:
    """Beside the job's own: one in each attempt. To make one is a rendezvous of all ranks."""
    groups = json.loads((made("plain") / "groups.json").read_text())
    assert groups == {"undisturbed": 1} | dict.fromkeys(["none", *ALONE, TOGETHER], 2)


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
