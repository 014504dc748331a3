"""One try at one request, in a process of its own: seen by ettwatch as a job without GPUs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import ettwatch
from ettwatch import Recorder
from ettwatch_trainer.remedies.checkpoints import unpin
from ettwatch_trainer.remedies.publishing import export
from ettwatch_trainer.remedies.publishing import request as requests
from ettwatch_trainer.remedies.publishing.request import PublishError, Request, Status
from ettwatch_trainer.remedies.publishing.supervisor import AGAIN, BUSY, DONE, FAILED

LOG = logging.getLogger("ettwatch.remedies")


def work(path: Path, at: Callable[[str], None] = lambda stage: None) -> int:
    """Publish one request; the exit code for the supervisor. `at` is told each stage, for tests of faults."""
    request = requests.read(path)
    with requests.alone(path) as mine:
        if not mine:
            return BUSY
        if requests.status(path).state == "done":
            unpin(request.checkpoint, request.id)  # it may have been killed before it could
            return DONE
        tries = requests.status(path).tries + 1
        requests.tell(path, Status("working", tries))
        at("begin")
        recorder = _recorder(request)
        try:
            final = publish(request, recorder, at)
        except PublishError as error:
            LOG.error("%s", error)
            requests.tell(path, Status("failed", tries, None, str(error)))
            recorder.failed(error)
            return FAILED
        except (OSError, MemoryError) as error:
            LOG.error("%r; it is tried again", error)
            recorder.failed(error)
            return AGAIN
        at("done")
        requests.tell(path, Status("done", tries, final))
        unpin(request.checkpoint, request.id)
        recorder.end()
        return DONE


def publish(request: Request, recorder: Recorder | None = None, at: Callable[[str], None] = lambda stage: None) -> Path:
    """Do what a request asks for, in this process, and return the published folder. Nothing is done twice.

    Raises PublishError where trying again would not help, OSError and MemoryError where it may.
    """
    told = ettwatch.get() if recorder is None else recorder
    final = export.published(request)
    if final is not None:
        export.point(request.out)
        return final
    with told.phase("trainer_init.checkpoint_load"):
        made = export.prepare(request)
    with told.phase("shutdown.model_publish"):
        return export.put(request, export.build(request, made, at), at)


def publish_here(path: Path, recorder: Recorder | None = None) -> Path:
    """The same in this process, while it waits: for comparison, or where no other process may be started."""
    request = requests.read(path)
    final = publish(request, recorder)
    requests.tell(path, Status("done", requests.status(path).tries + 1, final))
    unpin(request.checkpoint, request.id)
    return final


def _recorder(request: Request) -> Recorder:
    if request.job is None:
        return ettwatch.get()
    return ettwatch.init(job=f"{request.job}.publish", gpus=0, rank=0, labels={"publishes": request.job})
