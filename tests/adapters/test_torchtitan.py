"""The handler, fed with the records that torchtitan's structured logger makes of its spans."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.spooled import events, timeline

PROGRAM = """
import importlib, logging, os, time
from contextlib import contextmanager
from ettwatch.adapters import torchtitan

logger = logging.getLogger("structured")
logger.propagate = False
logger.setLevel(logging.INFO)
for name in os.environ["TITAN_STRUCT_LOGGER_HANDLERS"].split(","):
    module, _, function = name.rpartition(".")
    getattr(importlib.import_module(module), function)(
        structured_logger=logger, rank=0, source=SOURCE, output_dir="out", anything_new=1)

def say(name, step=None, kind="event"):
    logger.info("", extra={"log_type": kind, "log_type_name": name, "step": step})

@contextmanager
def span(name, step=None, seconds=0.0):
    say(name + "_start", step)
    try:
        time.sleep(seconds)
        yield
    except BaseException:
        say(name + "_error", step)
        raise
    finally:  # also after an error, as torchtitan does
        say(name + "_end", step)
"""

TRAINING = """
@contextmanager
def at_once():  # on however slow a machine
    now = time.monotonic_ns()
    torchtitan.monotonic_ns = lambda: now
    yield
    torchtitan.monotonic_ns = time.monotonic_ns

with span("torch_distributed_init", seconds=0.02):
    pass
with span("model_parallelism_init", seconds=0.02):
    pass
with span("tokenizer build", seconds=0.02):
    pass
with span("checkpoint_load", seconds=0.02):
    pass
for step in range(FIRST, FIRST + 4):
    with span("step", step):
        with span("fetching_batch", step, seconds=0.03):
            pass
        with span("fwd_bwd", step, seconds=0.02):
            pass
        with span("optim", step):
            pass
        # It is asked at each step; at the second it is done.
        if step == FIRST + 1:
            with span("checkpoint_save", step, seconds=0.05):
                pass
        else:
            with at_once(), span("checkpoint_save", step):
                pass
say("loss", step, kind="scalar")
logger.info("no record of a span")
logger.info("", extra={"log_type": "event", "log_type_name": 7, "step": "x"})
with span("eval", seconds=0.03):
    pass
with span("torch_distributed_teardown", seconds=0.02):
    pass
"""


def run(tmp_path: Path, body: str, *, first: int = 1, source: str = "training") -> tuple[Path, str]:
    spool = tmp_path / "spool"
    program = f"SOURCE, FIRST = {source!r}, {first}\n" + PROGRAM + body
    env = {**os.environ, "ETTWATCH_SPOOL": str(spool), "ETTWATCH_JOB": "titan", "ETTWATCH_GPUS": "1"}
    env["TITAN_STRUCT_LOGGER_HANDLERS"] = "ettwatch.adapters.torchtitan.register"
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return spool, done.stderr


def test_spans_become_phases_steps_and_waits(tmp_path: Path) -> None:
    spool, said = run(tmp_path, TRAINING)
    assert said == ""
    started = [getattr(event, "phase") for event in events(spool, "phase_started")]  # noqa: B009
    assert started == [
        "trainer_init.process_group_init",
        "trainer_init.train_module_creation",
        "trainer_init.tokenizer_build",
        "trainer_init.checkpoint_load",
        "trainer_init.get_first_batch_data",
        "wasted_training.checkpoint_save",
        "wasted_training.evaluation",
        "shutdown.teardown",
    ]
    (began,) = events(spool, "training_started")
    assert (getattr(began, "position"), getattr(began, "step")) == (0, 0)  # noqa: B009
    assert max(getattr(event, "step") for event in events(spool, "progress", "training_ended")) == 4  # noqa: B009
    stages = timeline(events(spool)).summary.stages
    assert 0.05 <= stages["wasted_training.checkpoint_save"] < 60
    # Three waits of 30 ms; the first is the first batch's.
    assert 0.09 <= stages["wasted_training.data_stall"] < 60


def test_a_resumed_training_begins_at_its_step(tmp_path: Path) -> None:
    spool, _ = run(tmp_path, TRAINING, first=101)
    (began,) = events(spool, "training_started")
    assert (getattr(began, "position"), getattr(began, "step")) == (100, 100)  # noqa: B009


def test_a_phase_that_fails_is_told_so_and_the_error_is_the_trainers(tmp_path: Path) -> None:
    body = textwrap.dedent("""
        try:
            with span("model_parallelism_init"):
                with span("inner build"):
                    raise ValueError("mine")
        except ValueError as error:
            assert str(error) == "mine"
        """)
    spool, _ = run(tmp_path, body)
    outcomes = [getattr(event, "outcome") for event in events(spool, "phase_ended")]  # noqa: B009
    assert outcomes == ["error", "error"]


def test_logs_of_another_source_are_not_recorded(tmp_path: Path) -> None:
    spool, said = run(tmp_path, TRAINING, source="generation")
    assert "'generation'" in said
    assert not spool.exists() or not events(spool, "phase_started")


def test_a_step_that_fails_is_none(tmp_path: Path) -> None:
    body = textwrap.dedent("""
        for step in (1, 2, 3):
            with span("fwd_bwd", step): pass
            try:
                with span("optim", step):
                    if step == 2: raise ValueError("mine")
            except ValueError:
                pass
        """)
    spool, _ = run(tmp_path, body)
    assert max(getattr(event, "step") for event in events(spool, "progress")) == 2  # noqa: B009


REAL = """
import logging, os, time
from torchtitan.observability import structured_logger as sl

sl.init_structured_logger(source="training", output_dir=os.environ["OUT"])

def span(name, seconds=0.0):
    with sl.log_trace_span(name):
        time.sleep(seconds)

span("torch_distributed_init", 0.02)
for step in (1, 2, 3):
    sl.set_step(step)
    with sl.log_trace_span("step"):
        span("fetching_batch", 0.02)
        span("fwd_bwd", 0.02)
        try:
            with sl.log_trace_span("optim"):
                if step == 2:
                    raise ValueError("mine")
        except ValueError:
            pass
sl.log_trace_scalar({"loss": 1.0})
sl.log_trace_instant("over")
span("torch_distributed_teardown", 0.02)
"""


if importlib.util.find_spec("torchtitan"):  # what it needs is large, so it is not among what the tests install

    @pytest.mark.torch
    def test_the_logger_of_torchtitan_itself(tmp_path: Path) -> None:
        spool = tmp_path / "spool"
        env = {**os.environ, "ETTWATCH_SPOOL": str(spool), "ETTWATCH_JOB": "titan", "OUT": str(tmp_path / "out")}
        jsonl = "torchtitan.observability.structured_logger.jsonl_handler.register_jsonl_handler"
        env["TITAN_STRUCT_LOGGER_HANDLERS"] = f"{jsonl},ettwatch.adapters.torchtitan.register"
        done = subprocess.run([sys.executable, "-c", REAL], env=env, capture_output=True, text=True, timeout=250)
        assert done.returncode == 0, done.stderr
        assert "ettwatch:" not in done.stderr
        phases = [getattr(event, "phase") for event in events(spool, "phase_started")]  # noqa: B009
        assert phases == [
            *["trainer_init.process_group_init", "trainer_init.get_first_batch_data", "shutdown.teardown"]
        ]
        (began,) = events(spool, "training_started")
        assert (getattr(began, "position"), getattr(began, "step")) == (0, 0)  # noqa: B009
        assert max(getattr(event, "step") for event in events(spool, "progress")) == 2  # noqa: B009
        assert list((tmp_path / "out").rglob("*.jsonl"))
