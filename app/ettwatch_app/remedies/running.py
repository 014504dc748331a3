"""One run of the reference trainer as a process, from an empty folder to the published model."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path

from ettwatch_app.demo.children import Children
from ettwatch_app.remedies.measure import Figures, measure
from ettwatch_trainer.reference import ReferenceConfig, job_command

LONGEST_S = 400.0
PUBLISHED_S = 120.0
# What a shell under a scheduler or a launcher knows of another job.
_FOREIGN = re.compile(r"ETTWATCH_|SLURM_|TORCHELASTIC_|(LOCAL_|GROUP_)?(RANK|WORLD_SIZE)$|MASTER_(ADDR|PORT)$")


class RunFailed(RuntimeError):
    """A run did not do its work; the message shows the end of its log."""


def run_once(config: ReferenceConfig, *, job: str) -> Figures:
    """Run, wait for the published model, and measure. Raises RunFailed, NotMeasured."""
    run_through(config, job=job)
    return measure(config.out / "spool", job)


def run_through(config: ReferenceConfig, *, job: str) -> None:
    """Run, and wait for the published model if there is to be one. `config.out` is removed first. Raises RunFailed."""
    out = config.out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    argv, more = job_command(config, job=job, python=sys.executable)
    env = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
    env |= more | {"ETTWATCH_SPOOL": str(out / "spool"), "PYTHONWARNINGS": "ignore"}
    with Children() as children:
        run = children.start(argv, env, out / "run.log")
        if run.wait(LONGEST_S) is None:
            raise RunFailed(f"{job} was not done after {LONGEST_S:.0f} s; the end of its log:\n{run.tail()}")
        if run.exit_code != 0:
            raise RunFailed(f"{job} ended with exit code {run.exit_code}; the end of its log:\n{run.tail()}")
        # Also where a process of its own publishes: the next run must not share the machine with it.
        deadline = time.monotonic() + PUBLISHED_S
        while config.publish and not any(config.inference.glob("step-*/about.json")):
            if time.monotonic() > deadline:
                raise RunFailed(
                    f"{job} published nothing within {PUBLISHED_S:.0f} s; the end of its log:\n{run.tail()}"
                )
            time.sleep(0.1)


def cleared(out: Path) -> None:
    """Remove what a run left."""
    shutil.rmtree(out, ignore_errors=True)
