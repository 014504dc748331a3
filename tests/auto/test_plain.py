"""The demo's trainer without a line that knows of ettwatch, under `--auto`, against notes that it took by hand."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path

import pytest
import torch

from ettwatch_schemas import decode_event
from ettwatch_trainer import checkpoint, launch
from ettwatch_trainer.config import TrainerConfig
from support import plain
from support.spooled import ETTWATCH, events, lines, timeline

pytestmark = [pytest.mark.torch, pytest.mark.slow]

CONFIG = TrainerConfig(
    steps=60,
    batch=256,
    rows=2000,
    hidden=64,
    checkpoint_every=20,
    evaluate_every=25,
    # What is lost with it takes longer than a few reports, however fast the machine is.
    kill_at_step=39,
    open_s=0.4,
    slow_read_every=5,
    slow_read_s=0.5,
)


def train(config: TrainerConfig, folder: Path, *launcher: str, spool: Path) -> None:
    env = {**os.environ, **launch.environment(config), "PYTHONPATH": str(folder), "ETTWATCH_SPOOL": str(spool)}
    # Without a C++ compiler it compiles by a backend that is quicker to test with.
    env |= {"CXX": "none", "ETTWATCH_REPORT_EVERY_S": "1.5"}
    argv = [*launcher, *plain.torchrun("clicks", config)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-4000:]


def weights(config: TrainerConfig) -> dict[str, torch.Tensor]:
    found = checkpoint.newest(config.checkpoints)
    assert found is not None
    assert found.step == config.steps
    state: dict[str, torch.Tensor] = checkpoint.load(found, model=config.model_name)["model"]
    return state


def test_its_components_are_those_of_one_instrumented_by_hand(tmp_path: Path) -> None:
    code = plain.make(tmp_path / "code")
    config = dataclasses.replace(CONFIG, out=tmp_path / "out")
    spool = tmp_path / "spool"
    run = (*ETTWATCH, "run", "--auto", "--job", "j", "--gpus", "2", "--max-restarts", "2", "--")
    train(config, code, *run, spool=spool)
    found = events(spool)
    auto = timeline(found).summary
    launched = [told for told in map(json.loads, lines(spool)) if told["source"] == "launcher"]
    noted = [decode_event(json.dumps(event).encode()) for event in plain.noted(config.out, launched)]
    hand = timeline(noted).summary
    assert (auto.status, auto.attempts, auto.nof, auto.flags) == ("succeeded", 2, 1, [])
    assert (hand.status, hand.attempts, hand.nof, hand.flags) == ("succeeded", 2, 1, [])
    differ = {name: auto.components[name] - hand.components[name] for name in hand.components}
    near = max(1.0, hand.e2e_s / 20)  # the slower the machine, the more time goes by between two notes of one thing
    assert all(abs(seconds) < near for seconds in differ.values()), differ
    assert abs(auto.effective_s - hand.effective_s) < near
    assert auto.tts_s is not None
    assert hand.tts_s is not None
    assert abs(auto.tts_s - hand.tts_s) < near
    assert abs(auto.ttr_s[0] - hand.ttr_s[0]) < near
    # The optimizer keeps count of its steps, so what is done again is known, too.
    again, by_hand = (summary.stages["wasted_training.rework"] for summary in (auto, hand))
    assert min(again, by_hand) > 0
    assert again == pytest.approx(by_hand, abs=near / 2)
    assert {event.rank for event in found if event.kind == "phase_started"} == {0, 1}
    (failed, _) = [event for event in found if event.kind == "attempt_ended" and event.source == "launcher"]
    assert getattr(failed, "message") == "rank 1 was ended by SIGKILL"  # noqa: B009


def test_what_it_trains_is_the_same_with_and_without(tmp_path: Path) -> None:
    code = plain.make(tmp_path / "code")
    short = dataclasses.replace(CONFIG, steps=25, kill_at_step=0, evaluate_every=10, open_s=0, slow_read_every=0)
    bare, watched = (dataclasses.replace(short, out=tmp_path / name) for name in ("bare", "watched"))
    train(bare, code, spool=tmp_path / "none")
    train(watched, code, *ETTWATCH, "run", "--auto", "--", spool=tmp_path / "spool")
    one, other = weights(bare), weights(watched)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not (tmp_path / "none").exists()
