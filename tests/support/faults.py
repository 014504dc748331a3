"""A small training that something goes wrong in, and what its story must be all the same."""

import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ettwatch_schemas import Event
from support.spooled import environment, kinds, timeline

TRAIN = """
import os, random, sys, threading, time
{before}
import ettwatch

def train(steps=12):
    dice, weight, losses = random.Random(7), 1.0, []
    rec = ettwatch.init(job=os.environ.get("TRAIN_JOB", "job"), model="m")
    with rec.phase("trainer_init.train_module_creation"):
        time.sleep(0.02)
    with rec.training(position=0, report_every_s=0.3):
        for n, batch in enumerate(rec.track([dice.random() for _ in range(steps)])):
            weight -= 0.1 * (weight - batch)
            losses.append(round((weight - batch) ** 2, 9))
            time.sleep(0.02)
            rec.step(32)
            if n == steps // 2:
                {middle}
                with rec.checkpoint():
                    time.sleep(0.01)
    with rec.phase("shutdown.model_publish"):
        pass
    print(losses, flush=True)
    {after}

if __name__ == "__main__":
    train()
"""
BOUNDARY = [
    *["job_submitted", "attempt_started", "phase_started", "phase_ended", "training_started", "phase_started"],
    *["phase_ended", "checkpoint_durable", "training_ended", "phase_started", "phase_ended"],
    *["attempt_ended", "job_ended"],
]
# Nobody waits for brokers that are known to be down; long enough for a busy machine to find out.
DOWN = {"ETTWATCH_KAFKA": "127.0.0.1:1", "ETTWATCH_EXIT_S": "60"}


def script(folder: Path, before: str = "", middle: str = "pass", after: str = "rec.end()") -> Path:
    """The training script with something in it that goes wrong."""
    lines = {name: textwrap.dedent(text).strip() for name, text in (("before", before), ("middle", middle))}
    code = TRAIN.replace("{before}", lines["before"]).replace("{after}", after)
    code = code.replace("{middle}", textwrap.indent(lines["middle"], " " * 16).strip())
    path = folder / "train.py"
    path.write_text(code)
    return path


def run(path: Path, spool: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(path)],
        env=environment(spool, {"ETTWATCH_HEARTBEAT_EVERY_S": "3600", **(env or {})}),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def boundary(found: list[Event]) -> list[str]:
    """Kinds in the order in which they were told."""
    ordered = sorted(found, key=lambda event: (event.ts, int(re.sub(r".*-", "", event.id))))
    return [kind for kind in kinds(ordered) if kind not in ("progress", "heartbeat")]


def is_right(found: list[Event], **more: Any) -> None:
    """The timeline is that of the training: it took a quarter of a second or more, in one attempt, and ended well."""
    summary = timeline(found).summary
    told = {"status": "succeeded", "attempts": 1, "nof": 0, "flags": []} | more
    assert {name: getattr(summary, name) for name in told} == told
    # No hour of a clock that was set back; but the machine may stand still for a while.
    assert 0.2 < summary.effective_s < 120
    assert summary.components["wasted_training"] < 120
