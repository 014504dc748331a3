"""Real runs of the reference trainer on two ranks: what is trained is the same with each remedy on and off."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from ettwatch_schemas import COMPONENTS, PhaseEnded, PhaseStarted
from ettwatch_trainer.reference import REMEDIES, ReferenceConfig, job_command
from ettwatch_trainer.remedies.checkpoints import Checkpointer, read_state
from support.remedies_losses import losses
from support.spooled import events, timeline

pytestmark = [pytest.mark.torch, pytest.mark.slow]

TINY = ReferenceConfig(
    engine="plain",
    steps=24,
    batch=32,
    batch_sizes=2,
    tables=6,
    rows=50,
    dim=4,
    hidden=8,
    fields=3,
    compile=False,
    checkpoint_every=6,
    least_interval_s=0.05,
    most_interval_s=0.1,
    losses=True,
).only()


# In the publisher, as it starts: it is held until the job is over, however long that takes.
HELD = """
import os, sys, time
for _ in range(6000 if "ettwatch_trainer.remedies.publishing" in sys.orig_argv else 0):
    if os.path.exists({over!r}): break
    time.sleep(0.1)
"""


def run(config: ReferenceConfig, job: str, **variables: str) -> None:
    argv, more = job_command(config, job=job, python=sys.executable)
    env = {**os.environ, **more, "ETTWATCH_SPOOL": str(config.out / "spool"), "CXX": "none", **variables}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def weights(out: Path) -> dict[str, torch.Tensor]:
    with Checkpointer(out / "checkpoints", rank=0, world=1) as shelf:
        found = shelf.newest()
    assert found is not None
    assert found.step == TINY.steps
    state: dict[str, torch.Tensor] = read_state(found.path, entry="model")
    return state


def published(out: Path) -> float:
    """When the model was published; waits for it."""
    deadline = time.monotonic() + 250
    while not (found := list((out / "inference").glob("step-*/about.json"))):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert len(found) == 1
    return found[0].stat().st_mtime


def ended(out: Path, job: str) -> float:
    """When the last rank of the job was done."""
    return max(event.ts for event in events(out / "spool", "attempt_ended") if event.job == job) / 1e6


def span(out: Path, job: str, phase: str, attempt: int) -> tuple[int, int]:
    """When a phase of start-up began and ended on rank 0; the first of that name."""
    found = [event for event in events(out / "spool") if event.job == job]
    starts = [event for event in found if isinstance(event, PhaseStarted) and event.phase == f"trainer_init.{phase}"]
    start = next(event for event in starts if (event.attempt, event.rank) == (attempt, 0))
    ends = (event for event in found if isinstance(event, PhaseEnded) and event.span == start.span)
    end = next(event for event in ends if (event.attempt, event.rank) == (attempt, 0))
    return start.ts, end.ts


def beside(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job without any remedy, and undisturbed."""
    out = tmp_path_factory.mktemp("plain")
    run(dataclasses.replace(TINY, out=out, publish=False), "plain")
    return out


def test_the_same_is_trained_with_all_of_them_across_a_kill(plain: Path, tmp_path: Path) -> None:
    """Bit by bit, with ranks that restart in place from a checkpoint that was written beside training."""
    wanted = [name for name in REMEDIES if name not in ("dynamic_shapes", "autotune", "compile_cache")]
    # The stream takes long to open: the ranks may take seconds to meet, and the rest must begin before it ends.
    config = dataclasses.replace(TINY.only(*wanted), out=tmp_path, kill_at_step=15, open_s=8.0)
    over = tmp_path / "over"
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "sitecustomize.py").write_text(HELD.format(over=str(over)))
    places = filter(None, (str(tmp_path / "held"), os.environ.get("PYTHONPATH")))
    run(config, "remedied", PYTHONPATH=os.pathsep.join(places))
    over.touch()
    told = losses(tmp_path)
    assert told == losses(plain)
    assert {len(values) for values in told.values()} == {1}  # what was done again came out the same
    same(weights(tmp_path), weights(plain))
    snap = timeline(event for event in events(tmp_path / "spool") if event.job == "remedied")
    assert (snap.summary.status, snap.summary.attempts, snap.summary.nof) == ("succeeded", 2, 1)
    assert set(snap.summary.components) == set(COMPONENTS)
    # One broadcast, no save in the way, publishing handed over: each shows in what was told.
    phases = [event for event in events(tmp_path / "spool", "phase_started") if isinstance(event, PhaseStarted)]
    background = {event.phase for event in phases if event.background}
    assert "wasted_training.checkpoint_upload" in background
    assert snap.summary.stages.get("shutdown.model_publish", 0) < 60
    # Start-up waits for nothing that it does not need (all of it: test_reference_beside.py).
    stream = span(tmp_path, "remedied", "get_first_batch_data", 0)
    assert span(tmp_path, "remedied", "train_module_creation", 0)[0] < stream[1]
    measured = json.loads((config.knowledge / "intervals.json").read_text())
    assert measured["blocking_s"]
    assert measured["durable_after_s"], "how long saves take to be safe is not measured"
    assert published(tmp_path) > ended(tmp_path, "remedied")  # not by the job, which was over by then


def test_the_same_is_trained_across_a_kill_without_any(plain: Path, tmp_path: Path) -> None:
    run(dataclasses.replace(TINY, out=tmp_path, kill_at_step=15, open_s=1.0), "killed")
    assert losses(tmp_path) == losses(plain)
    same(weights(tmp_path), weights(plain))
    for attempt in range(2):
        metadata, stream = (
            span(tmp_path, "killed", name, attempt) for name in ("shard_metadata", "get_first_batch_data")
        )
        assert not beside(metadata, stream), "they are beside each other without the remedy, so nothing was shown"
    assert published(tmp_path) < ended(tmp_path, "killed")  # by the job, whose devices wait for it
