"""Handing a checkpoint over: the request is put down and a process of its own is started, which outlives this one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ettwatch import Recorder
from ettwatch_trainer.remedies.publishing import request as requests
from ettwatch_trainer.remedies.publishing.request import PublishError, Request, Status

MODULE = "ettwatch_trainer.remedies.publishing"
# What says who a rank is. The publisher is no rank of the job, and what it uses must not be taken for the job's.
OF_A_RANK = re.compile(
    r"TORCHELASTIC_.*|MASTER_(ADDR|PORT)|ROLE_NAME|((LOCAL|GROUP|ROLE)_)?(RANK|WORLD_SIZE)"
    r"|ETTWATCH_(ATTEMPT|RANK|JOB|GPUS|LAUNCHER|RUN_DIR|CLOCK|SUBMITTED|AUTO|AUTO_PID)"
)


def hand_over(
    checkpoint: Path | str,
    *,
    factory: str,
    out: Path | str,
    arguments: Mapping[str, Any] | None = None,
    entry: str = "model",
    tolerance: float = 1e-5,
    aot: bool = False,
    job: str | None = None,
    recorder: Recorder | None = None,
    tries: int = 3,
    start: bool = True,
) -> Path:
    """Ask for a durable checkpoint to be published, and return the request's file at once. Called by one rank.

    factory: `package.module:function`; called with `arguments` (plain JSON) it returns an `Inference`. entry: the part
    of the saved state that holds the weights. tolerance: how far the exported model may be from the checkpoint's,
    relative and absolute. aot: also compile it for this kind of machine with AOTInductor. job, or recorder: whose
    snapshot it is; the publisher is then seen as the job `<job>.publish` without GPUs. tries: how often it is begun.
    start: False only puts the request down, for `--resume-pending`.

    The checkpoint stays, whatever the trainer's retention, until it is published. Raises CheckpointError if it is not
    durable, PublishError for a factory that no other process can find.
    """
    from ettwatch_trainer.remedies.checkpoints import marker, pin

    module, _, function = factory.partition(":")
    if module == "__main__" or not module or not function:
        raise PublishError(f"factory {factory!r}: give package.module:function, of a module that others can import")
    path = Path(checkpoint).absolute()
    about = marker.whole(path)
    if job is None and recorder is not None and recorder.enabled:
        job = recorder.job
    made = Request(
        uuid.uuid4().hex[:8],
        path,
        about.step,
        about.position,
        factory,
        dict(arguments or {}),
        entry,
        Path(out).absolute(),
        tolerance,
        aot,
        job,
        tries,
        _search(),
    )
    pin(path, made.id)
    requests.write(made)
    if start:
        start_publisher(made.path)
    return made.path


def publish_here(request: Path, recorder: Recorder | None = None) -> Path:
    """Publish in this process, while it waits, what `hand_over(…, start=False)` has put down; the published folder.

    For comparison, or where no other process may be started. The phases are told to `recorder`.
    """
    from ettwatch_trainer.remedies.publishing.work import publish_here as here

    return here(request, recorder)


def start_publisher(request: Path) -> int:
    """Start the process that publishes, in a session of its own: what ends the trainer does not end it. Its pid."""
    environ = {name: value for name, value in os.environ.items() if not OF_A_RANK.fullmatch(name)}
    environ["CUDA_VISIBLE_DEVICES"] = ""
    with request.with_suffix(".log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(request)],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    # Nobody waits for it, but somebody has to take its exit status while this process still lives.
    threading.Thread(target=process.wait, name="ettwatch-publisher", daemon=True).start()
    return process.pid


def resume_pending(out: Path | str) -> list[Path]:
    """Start a publisher for every request below `out` that is not finished; those requests.

    One that is being worked on is left to whoever does.
    """
    unfinished = requests.pending(Path(out).absolute())
    for request in unfinished:
        start_publisher(request)
    return unfinished


def wait(request: Path, timeout_s: float) -> Status:
    """How far a request is once it is done or has failed, or after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while True:
        status = requests.status(request)
        if status.state in ("done", "failed") or time.monotonic() >= end:
            return status
        time.sleep(0.05)


def _search() -> list[str]:
    """Where this process finds modules, but for what every Python of this environment finds by itself."""
    places = [os.path.abspath(place) for place in sys.path]
    return [place for place in places if not place.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep + "lib"))]
