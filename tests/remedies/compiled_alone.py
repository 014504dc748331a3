"""Trains on one rank with compiled code, once for each name, in one process; leaves losses and what was told.

usage: compiled_alone.py OUT NAME...   NAME: `none`, or a remedy. Where something is remembered, twice: the second finds
what the first wrote down.
"""

import json
import os
import sys
from pathlib import Path

import torch

import ettwatch
from ettwatch_trainer.compiling import backend
from ettwatch_trainer.group import Group
from ettwatch_trainer.reference import ReferenceConfig
from ettwatch_trainer.reference.job import run

TWICE = ("compile_cache", "dynamic_shapes")


def main() -> None:
    out, *names = sys.argv[1:]
    for name in names:
        for number in range(2 if name in TWICE else 1):
            config = ReferenceConfig(
                steps=12,
                batch=32,
                batch_sizes=2,
                ranks=1,
                tables=6,
                rows=50,
                dim=4,
                hidden=8,
                fields=3,
                engine="plain",
                losses=True,
                publish=False,
                tune=name == "autotune",
                memory=str(Path(out) / f"memory-{name}"),
                out=Path(out) / f"{name}-{number}",
            ).only(*(() if name == "none" else (name,)))
            folder = config.out / "inductor"
            folder.mkdir(parents=True)
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
            torch.compiler.reset()
            os.environ["ETTWATCH_SPOOL"] = str(config.out / "spool")
            with ettwatch.init(job=f"{name}-{number}") as recorder:
                run(config, recorder, Group())
    (Path(out) / "about.json").write_text(json.dumps({"backend": backend()}))


if __name__ == "__main__":
    main()
