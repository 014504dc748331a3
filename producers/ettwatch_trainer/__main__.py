"""`python -m ettwatch_trainer`: one rank of the demo job (or the only one, without torchrun)."""

from __future__ import annotations

import os

import ettwatch
from ettwatch_trainer.config import parse


def main() -> None:
    """Read the settings, then run one attempt under the recorder."""
    config = parse()
    with ettwatch.init() as recorder:
        # torch is the larger part of this program; loading it is a phase of its own.
        with recorder.phase("hardware_setup.binary_start"):
            from ettwatch_trainer.group import Group
            from ettwatch_trainer.job import run
        run(config, recorder, Group.of(os.environ))


if __name__ == "__main__":
    main()
