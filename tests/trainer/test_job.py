"""The trainer as a process: alone, and as two ranks under torchrun and `ettwatch run`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ettwatch
from ettwatch_trainer import checkpoint, job, launch
from ettwatch_trainer.config import TrainerConfig
from ettwatch_trainer.group import Group
from ettwatch_trainer.record import HOST, gather
from ettwatch_trainer.stream import Clicks
from ettwatch_trainer.trainer import Trainer

pytestmark = pytest.mark.torch


def run(argv: list[str], spool: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ETTWATCH_")}
    environ = {**clean, "OMP_NUM_THREADS": "1", **variables, "ETTWATCH_SPOOL": str(spool)}
    return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=250)


def alone(config: TrainerConfig, spool: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "ettwatch_trainer", *config.arguments()], spool, **variables)


def recorded(spool: Path) -> list[dict[str, Any]]:
    return list(gather(path.read_text().splitlines() for path in spool.glob("*.jsonl")))


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["kind"] == kind]


def phases(events: list[dict[str, Any]]) -> list[str]:
    return [event["phase"] for event in of_kind(events, "phase_started")]


def last_weights(config: TrainerConfig) -> dict[str, torch.Tensor]:
    found = checkpoint.newest(config.checkpoints)
    assert found is not None
    assert found.step == config.steps
    weights: dict[str, torch.Tensor] = checkpoint.load(found, model=config.model_name)["model"]
    return weights


def test_a_run_tells_its_phases_and_recording_changes_nothing(
    tmp_path: Path, changed: Callable[..., TrainerConfig]
) -> None:
    watched, unwatched = changed(out=tmp_path / "watched"), changed(out=tmp_path / "unwatched")
    spool = tmp_path / "spool"
    done = alone(watched, spool, ETTWATCH_JOB="j")
    assert done.returncode == 0, done.stderr
    assert "step 30/30" in done.stdout
    events = recorded(spool)
    assert {event["host"] for event in events} == {HOST}
    assert phases(events) == [
        "hardware_setup.binary_start",
        "trainer_init.device_init",
        "trainer_init.process_group_init",
        "trainer_init.preproc_creation",
        "trainer_init.train_module_creation",
        "trainer_init.checkpoint_load",
        "trainer_init.get_first_batch_data",
        "wasted_training.checkpoint_save",
        "wasted_training.evaluation",
        "wasted_training.checkpoint_save",
        "shutdown.final_checkpoint",
        "shutdown.model_publish",
        "shutdown.teardown",
    ]
    assert len(of_kind(events, "phase_ended")) == len(phases(events))
    durable = of_kind(events, "checkpoint_durable")
    assert [event["step"] for event in durable] == [10, 20, 30]
    assert all(event["bytes"] > 0 for event in durable)
    (ended,) = of_kind(events, "training_ended")
    assert (ended["step"], ended["position"]) == (30, 30 * watched.batch)
    assert [event["outcome"] for event in of_kind(events, "job_ended")] == ["succeeded"]

    silent = tmp_path / "silent"
    done = alone(unwatched, silent, ETTWATCH_DISABLED="1")
    assert done.returncode == 0, done.stderr
    assert not silent.exists()
    one, other = last_weights(watched), last_weights(unwatched)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_two_ranks_are_killed_and_go_on_from_the_checkpoint(
    tmp_path: Path, changed: Callable[..., TrainerConfig]
) -> None:
    config = changed(kill_at_step=17, slow_read_every=4, slow_read_s=0.1)
    argv, variables = launch.job_command(config)
    done = run(argv, tmp_path / "spool", **variables)
    assert done.returncode == 0, done.stderr
    assert "attempt 1  resumed at step 10" in done.stdout
    events = recorded(tmp_path / "spool")

    attempts = of_kind(events, "attempt_ended")
    by_launcher = [event for event in attempts if event["source"] == "launcher"]
    assert [(event["attempt"], event["outcome"]) for event in by_launcher] == [(0, "failed"), (1, "succeeded")]
    assert by_launcher[0]["cause"] == "unknown"
    # Rank 0 says so, unless torchrun has ended it before it could.
    told = [event["message"] for event in attempts if event["source"] == "trainer"]
    assert told in ([], ["PeerLost: rank 0: the connection to another rank broke after step 17"])
    assert [event["outcome"] for event in of_kind(events, "job_ended")] == ["succeeded"]

    started = [event for event in of_kind(events, "training_started") if event["rank"] == 0]
    samples = 2 * config.batch
    assert [(event["attempt"], event["step"], event["position"]) for event in started] == [
        (0, 0, 0),
        (1, 10, 10 * samples),
    ]
    ended = [event for event in of_kind(events, "training_ended") if event["rank"] == 0]
    assert [(event["attempt"], event["position"]) for event in ended] == [(1, 30 * samples)]
    # Slow reads are 3, 7, 11, … of the stream; attempt 1 begins with read 10.
    assert ended[0]["data_wait_us"] >= 5 * 100_000
    assert {event["rank"] for event in of_kind(events, "phase_started")} == {0, 1}
    assert (config.inference / "step-00000030" / "model.pt2").exists()
    last_weights(config)


def test_who_a_process_is_comes_from_the_launchers() -> None:
    assert Group.of({}) == Group(rank=0, world=1, attempt=0, parent=None)
    told = {"RANK": "1", "WORLD_SIZE": "2", "ETTWATCH_ATTEMPT": "3", "TORCHELASTIC_RESTART_COUNT": "1"}
    group = Group.of({**told, "TORCHELASTIC_RUN_ID": "x"})
    assert (group.rank, group.world, group.attempt) == (1, 2, 4)
    assert group.parent == os.getppid()
    assert not group.orphaned
    assert Group(parent=-1).orphaned


def test_events_are_gathered_in_order_of_writing() -> None:
    def line(*times: int) -> str:
        events = [{"ts": ts, "host": "secret"} for ts in times]
        return json.dumps(events if len(events) > 1 else events[0])

    found = list(gather([[line(1), line(3, 5)], [line(2), line(4)]]))
    assert [event["ts"] for event in found] == [1, 2, 4, 3, 5]
    assert {event["host"] for event in found} == {HOST}


def test_a_run_that_was_finished_has_nothing_left_to_train(
    small: TrainerConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    done = Trainer.of(small, Group(), Clicks.of(small))
    done.step, done.position = small.steps, small.steps * small.batch
    done.save()
    again = job.run(small, ettwatch.get(), Group())
    assert again.position == done.position
    assert "resumed at step 30" in capsys.readouterr().out
