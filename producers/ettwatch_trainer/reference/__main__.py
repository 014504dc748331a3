"""`python -m ettwatch_trainer.reference`: one rank of a job (or the only one, without torchrun)."""

from __future__ import annotations

import os
import sys
import time

import ettwatch
from ettwatch_trainer.reference.config import PROGRAM, parse


def main() -> None:
    """Read the settings, then run one attempt under the recorder."""
    config = parse()
    with ettwatch.init() as recorder:
        if config.host_start_s and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
            # A host that is started anew; ranks that are restarted in place find theirs running.
            with recorder.phase("hardware_setup.image_pull"):
                time.sleep(config.host_start_s)
        # torch is the larger part of this program; loading it is a phase of its own.
        with recorder.phase("hardware_setup.binary_start"):
            from ettwatch_trainer.group import Group
            from ettwatch_trainer.reference.compiled import cache_folder
            from ettwatch_trainer.reference.engine import NoEngine, settled
            from ettwatch_trainer.reference.job import run

            try:
                config = settled(config, int(os.environ.get("LOCAL_WORLD_SIZE") or 1))
            except NoEngine as error:
                recorder.failed(error)
                sys.exit(f"{PROGRAM}: {error}")
        group = Group.of(os.environ)
        if config.device == "cuda":
            group = group.on_gpu(int(os.environ.get("LOCAL_RANK") or 0))
        folder = cache_folder(config, group)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
        run(config, recorder, group)


if __name__ == "__main__":
    main()
