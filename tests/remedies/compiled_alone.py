"""Trains on one rank with compiled code, job after job in one process; leaves losses, checkpoints and what was told.

usage: compiled_alone.py OUT NAME...   NAME: `none`, or a remedy; each makes two jobs, and the second finds what the
first wrote down. One of the two is stopped after a step, without a last save, and goes on as a second attempt.
"""

import json
import os
import sys
from pathlib import Path

import torch

import ettwatch
from ettwatch_trainer.compiling import backend
from ettwatch_trainer.group import Group
from ettwatch_trainer.reference import ReferenceConfig, job

STOP = 7
STOPPED = ("none-1", "compile_cache-0", "dynamic_shapes-1", "autotune-0")
LEFT_OUT = ("autotune-1",)


class Stopped(Exception):
    """In place of a kill."""


def stop(config: ReferenceConfig, group: Group, step: int) -> None:
    if group.attempt == 0 and step == config.kill_at_step:
        raise Stopped


def attempt(config: ReferenceConfig, name: str, number: int) -> None:
    """One attempt as a process of its own would make it: with nothing compiled, and an empty folder for it."""
    folder = config.out / "inductor" / str(number)
    folder.mkdir(parents=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    os.environ["ETTWATCH_SPOOL"] = str(config.out / "spool")
    os.environ["ETTWATCH_ATTEMPT"] = str(number)
    torch.compiler.reset()
    with ettwatch.init(job=name) as recorder:
        job.run(config, recorder, Group(attempt=number))


def main() -> None:
    out, *names = sys.argv[1:]
    job._perhaps_die = stop
    for remedy in names:
        for name in (f"{remedy}-0", f"{remedy}-1"):
            if name in LEFT_OUT:
                continue
            config = ReferenceConfig(
                steps=12,
                batch=32,
                batch_sizes=2,
                ranks=1,
                fail_rank=0,
                tables=6,
                rows=50,
                dim=4,
                hidden=8,
                fields=3,
                engine="plain",
                checkpoint_every=5,
                kill_at_step=STOP if name in STOPPED else 0,
                losses=True,
                publish=False,
                tune=remedy == "autotune",
                tune_s=200.0,  # what is not searched in time is searched by the next attempt
                memory=str(Path(out) / f"memory-{remedy}"),
                out=Path(out) / name,
            ).only(*(() if remedy == "none" else (remedy,)))
            try:
                attempt(config, name, 0)
            except Stopped:
                attempt(config, name, 1)
    (Path(out) / "about.json").write_text(json.dumps({"backend": backend()}))


if __name__ == "__main__":
    main()
