"""The two demos: the full one trains, the light one takes the events of a run that was recorded."""

import importlib.util
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files

from ettwatch_app.datafolder import DataFolder, living_up
from ettwatch_app.demo.children import Child, Children
from ettwatch_app.demo.progress import TrainingProgress
from ettwatch_app.render import stderr_console

_START_S = 60.0
_STEP_S = 0.2
_MOST_H = 3
"""How long `up` lives where nobody ends it; no training of a demo takes as long."""
_ENDED = frozenset(("succeeded", "failed", "cancelled", "lost"))
# What a shell under a scheduler or a launcher knows of another job.
_FOREIGN = re.compile(r"ETTWATCH_|SLURM_|TORCHELASTIC_|(LOCAL_|GROUP_)?(RANK|WORLD_SIZE)$|MASTER_(ADDR|PORT)$")


class DemoFailed(Exception):
    """A process of the demo did not do its work; the message says which, and shows the end of its log."""

    def __init__(self, what: str, child: Child) -> None:
        super().__init__(f"{what}; the end of {child.log}:\n\n{child.tail()}")


def has_torch() -> bool:
    """Whether the full demo can run; nothing is imported."""
    return importlib.util.find_spec("torch") is not None


@contextmanager
def trained(folder: DataFolder) -> Iterator[None]:
    """Train under the eyes of `ettwatch up`; inside the context all of it can be read, and `up` still lives.

    Raises DemoFailed.
    """
    from ettwatch_trainer import config, launch

    settings = config.demo(folder.root / "trainer")
    stderr_console().print(
        f"training a small recommendation model with {settings.ranks} ranks, about two minutes; "
        f"one rank will be killed after step {settings.kill_at_step}",
        soft_wrap=True,
    )
    argv, more = launch.job_command(settings)
    env = _environment()
    with Children() as children:
        up = children.start(
            # It ends by itself if this process is killed and cannot end it.
            _ettwatch(
                *("up", "--listen", "127.0.0.1:0", "--page", "off", "--interval", "1s", "--for", f"{_MOST_H}h"),
                *("--data", str(folder.root)),
            ),
            env,
            folder.root / "up.log",
        )
        _await_up(folder, up)
        run = children.start(argv, env | more | {"ETTWATCH_SPOOL": str(folder.spool)}, folder.root / "trainer.log")
        with TrainingProgress(run, settings.steps) as progress:
            while run.exit_code is None:
                progress.look()
                if up.exit_code == 0:
                    raise DemoFailed(
                        f"the training takes longer than {_MOST_H} hours: this machine is too busy, or too slow; "
                        "`ettwatch demo --lite` trains nothing",
                        up,
                    )
                if up.exit_code is not None:
                    raise DemoFailed(f"`ettwatch up` ended with exit code {up.exit_code}", up)
                time.sleep(_STEP_S)
            progress.look()
        if run.exit_code != 0:
            raise DemoFailed(f"the training ended with exit code {run.exit_code}", run)
        _await_end(folder, up, launch.JOB)
        yield


@contextmanager
def recorded(folder: DataFolder) -> Iterator[None]:
    """Put the recorded events into the spool and let `ettwatch up --once` read them. Raises DemoFailed."""
    stderr_console().print("the events of a recorded run are read: nothing is trained here", soft_wrap=True)
    with as_file(files("ettwatch_app").joinpath("recorded/demo-run.jsonl")) as source:
        shutil.copyfile(source, folder.spool / "demo-run.jsonl")
    with Children() as children:
        up = children.start(
            _ettwatch("up", "--once", "--listen", "off", "--data", str(folder.root)),
            _environment(),
            folder.root / "up.log",
        )
        with stderr_console().status("reading the recorded events"):
            while up.exit_code is None:
                time.sleep(_STEP_S)
        if up.exit_code != 0:
            raise DemoFailed(f"`ettwatch up --once` ended with exit code {up.exit_code}", up)
    yield


def _ettwatch(*words: str) -> list[str]:
    return [sys.executable, "-m", "ettwatch.cli", *words]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}


def _await_up(folder: DataFolder, up: Child) -> None:
    deadline = time.monotonic() + _START_S
    with stderr_console().status("starting `ettwatch up`"):
        while living_up(folder) is None:
            if up.exit_code is not None:
                raise DemoFailed(f"`ettwatch up` ended with exit code {up.exit_code}", up)
            if time.monotonic() > deadline:
                raise DemoFailed(f"`ettwatch up` did not start within {_START_S:.0f} s", up)
            time.sleep(_STEP_S)


def _await_end(folder: DataFolder, up: Child, job: str) -> None:
    """Wait until `up` has written the end of the job."""
    from ettwatch_app.datafolder import open_store

    deadline = time.monotonic() + _START_S
    with open_store(folder, who="ettwatch demo") as store, stderr_console().status("waiting for the last events"):
        while not _ENDED.intersection(
            str(row[0]) for row in store.query("SELECT status FROM jobs WHERE job = {job:String}", {"job": job}).rows
        ):
            if time.monotonic() > deadline or up.exit_code is not None:
                raise DemoFailed("the end of the job did not arrive in ClickHouse", up)
            time.sleep(_STEP_S)
