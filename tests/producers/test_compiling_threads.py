"""While one thread compiles, what the others tell counts all the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.spooled import events

PROGRAM = """
import threading, torch, ettwatch

begun, told = threading.Event(), threading.Event()

def backend(graph, inputs):
    begun.set()
    assert told.wait(200)
    return graph.forward

with ettwatch.init() as rec:
    rec.training_started(position=0, step=0)
    thread = threading.Thread(target=lambda: torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2)))
    thread.start()
    assert begun.wait(200)
    with rec.phase("wasted_training.evaluation"):
        pass
    rec.step(5)
    told.set()
    thread.join()
    rec.training_ended()
"""


@pytest.mark.torch
def test_a_phase_and_a_step_beside_a_compilation_are_told(tmp_path: Path) -> None:
    env = {**os.environ, "ETTWATCH_SPOOL": str(tmp_path / "spool"), "ETTWATCH_JOB": "j", "ETTWATCH_GPUS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    (phase,) = events(tmp_path / "spool", "phase_started")
    assert getattr(phase, "phase") == "wasted_training.evaluation"  # noqa: B009
    assert len(events(tmp_path / "spool", "phase_ended")) == 1
    (ended,) = events(tmp_path / "spool", "training_ended")
    assert getattr(ended, "position") == 5  # noqa: B009
