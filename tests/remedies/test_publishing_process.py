"""The publisher as a process: it outlives the trainer, is begun again when it is killed, and is seen by ettwatch."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from ettwatch_trainer.remedies.checkpoints import Checkpointer
from ettwatch_trainer.remedies.publishing import hand_over, resume_pending, status, wait
from ettwatch_trainer.remedies.publishing.supervisor import FAILED, supervise
from support.checkpoint_factories import Scorer
from support.spooled import until

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]

TRAINER = """
import json, sys
import ettwatch
from pathlib import Path
from ettwatch_trainer.remedies.checkpoints import Checkpointer
from ettwatch_trainer.remedies.publishing import hand_over, status
from support.checkpoint_factories import Scorer

folder = Path(sys.argv[1])
with ettwatch.init(job="clicks", gpus=8) as recorder:
    with recorder.training(position=0):
        recorder.step(10)
    checkpointer = Checkpointer(folder / "checkpoints", mode="blocking")
    found = checkpointer.save({"model": Scorer()}, step=1, position=10).durable.result()
    with recorder.phase("shutdown.model_publish"):
        arguments = json.loads(sys.argv[3])
        out = folder / "out"
        request = hand_over(found.path, factory=sys.argv[2], arguments=arguments, out=out, recorder=recorder)
    print(json.dumps([str(request), status(request).state]))
"""


def environ(spool: Path) -> dict[str, str]:
    mine = {name: value for name, value in os.environ.items() if not name.startswith("ETTWATCH_")}
    known = os.pathsep.join(place for place in sys.path if place)
    rank = {"RANK": "0", "TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_RESTART_COUNT": "2"}
    return {**mine, **rank, "PYTHONPATH": known, "OMP_NUM_THREADS": "1", "ETTWATCH_SPOOL": str(spool)}


def saved(folder: Path) -> Path:
    torch.manual_seed(3)
    checkpointer = Checkpointer(folder / "checkpoints", mode="blocking")
    return checkpointer.save({"model": Scorer()}, step=1, position=10).durable.result().path


@pytest.mark.slow
def test_the_job_ends_at_once_and_the_publisher_goes_on_though_it_is_killed(tmp_path: Path) -> None:
    count, spool = tmp_path / "count", tmp_path / "spool"
    arguments = json.dumps({"times": 1, "count": str(count)})
    argv = [sys.executable, "-c", TRAINER, str(tmp_path), "support.checkpoint_factories:deadly", arguments]
    # In a session of its own, which is killed as a whole when the job is over: nothing of the job is left.
    trainer = subprocess.Popen(argv, env=environ(spool), stdout=subprocess.PIPE, text=True, start_new_session=True)
    out, _ = trainer.communicate(timeout=250)
    ended = time.time()
    assert trainer.returncode == 0
    with contextlib.suppress(ProcessLookupError):
        os.killpg(trainer.pid, signal.SIGKILL)
    request, state = json.loads(out)
    assert state in ("pending", "working")  # and it is killed once before it is done
    found = wait(Path(request), 250)
    assert (found.state, found.tries) == ("done", 2), (Path(request).with_suffix(".log")).read_text()
    assert count.read_bytes() == b"x"
    assert found.published is not None
    assert (tmp_path / "out" / "current").resolve() == found.published
    until(lambda: any(event["kind"] == "attempt_ended" and event["job"] != "clicks" for event in events(spool)))
    told = events(spool)
    of_job = [event for event in told if event["job"] == "clicks"]
    of_publisher = [event for event in told if event["job"] == "clicks.publish"]
    assert max(int(str(event["ts"])) for event in of_job) <= ended * 1e6, "publishing prolonged the job"
    assert {event["gpus"] for event in of_publisher if "gpus" in event} == {0}
    assert {event["attempt"] for event in of_publisher if "attempt" in event} == {0, 1}
    (published,) = [event for event in of_publisher if event.get("phase") == "shutdown.model_publish"]
    assert published["attempt"] == 1
    (end,) = [event for event in of_publisher if event["kind"] == "attempt_ended"]
    assert end["outcome"] == "succeeded"


def events(spool: Path) -> list[dict[str, object]]:
    return [json.loads(line) for path in spool.glob("*.jsonl") for line in path.read_text().splitlines()]


def test_what_nobody_finished_is_started_again(tmp_path: Path) -> None:
    checkpoint = saved(tmp_path)
    factory = "support.checkpoint_factories:scorer"
    request = hand_over(checkpoint, factory=factory, out=tmp_path / "out", start=False)
    assert status(request).state == "pending"
    assert resume_pending(tmp_path / "out") == [request]
    assert wait(request, 250).state == "done"
    assert resume_pending(tmp_path / "out") == []


@pytest.mark.slow
def test_one_that_is_killed_every_time_is_given_up(tmp_path: Path) -> None:
    checkpoint = saved(tmp_path)
    arguments = {"times": 99, "count": str(tmp_path / "count")}
    factory = "support.checkpoint_factories:deadly"
    request = hand_over(checkpoint, factory=factory, arguments=arguments, out=tmp_path / "out", tries=2, start=False)
    assert supervise(request, pause_s=0.01) == FAILED
    found = status(request)
    assert (found.state, found.tries, found.reason) == ("failed", 2, "2 tries: the last was killed by SIGKILL")
    assert checkpoint.exists()


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of torch's compiler, of itself
def test_it_can_be_compiled_for_this_machine_as_well(tmp_path: Path) -> None:
    from ettwatch_trainer.remedies.publishing import publish_here

    factory = "support.checkpoint_factories:scorer"
    request = hand_over(saved(tmp_path), factory=factory, out=tmp_path / "out", aot=True, start=False)
    published = publish_here(request)
    assert {path.name for path in published.iterdir()} == {"model.pt2", "model.aot.pt2", "about.json"}
