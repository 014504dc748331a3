"""Publishing in this process and by the work of the publisher: what comes out, what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ettwatch_trainer.remedies.checkpoints import Checkpointer, CheckpointError
from ettwatch_trainer.remedies.publishing import PublishError, Status, hand_over, publish_here, status
from ettwatch_trainer.remedies.publishing import request as requests
from ettwatch_trainer.remedies.publishing.supervisor import AGAIN, BUSY, DONE, FAILED
from ettwatch_trainer.remedies.publishing.work import work
from support.checkpoint_factories import INPUTS, Scorer

pytestmark = pytest.mark.torch

MODELS = "support.checkpoint_factories"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def saved(folder: Path, step: int = 7) -> tuple[Path, Scorer]:
    """A durable checkpoint, and the model that it is of."""
    torch.manual_seed(step)
    model = Scorer()
    checkpointer = Checkpointer(folder / "checkpoints", mode="blocking")
    return checkpointer.save({"model": model}, step=step, position=step * 10).durable.result().path, model


def ask(folder: Path, checkpoint: Path, factory: str = "scorer", **more: Any) -> Path:
    return hand_over(checkpoint, factory=f"{MODELS}:{factory}", out=folder / "out", start=False, **more)


def scores(published: Path) -> torch.Tensor:
    found: torch.Tensor = torch.export.load(published / "model.pt2").module()(*INPUTS)
    return found


@pytest.mark.parametrize("factory", ["scorer", "renamed"])
def test_what_is_published_scores_as_the_checkpoint(tmp_path: Path, factory: str) -> None:
    checkpoint, model = saved(tmp_path)
    request = ask(tmp_path, checkpoint, factory)
    published = publish_here(request)
    assert published.parent == tmp_path / "out"
    with torch.no_grad():
        assert torch.allclose(scores(published).flatten(), model(*INPUTS))
    about = json.loads((published / "about.json").read_text())
    assert (about["step"], about["position"], about["checkpoint"]) == (7, 70, checkpoint.name)
    assert set(about["sha256"]) == {"model.pt2"}
    assert (tmp_path / "out" / "current").resolve() == published
    assert status(request) == Status("done", 1, published)


def test_the_shape_that_was_said_to_be_free_is_free(tmp_path: Path) -> None:
    checkpoint, model = saved(tmp_path)
    published = publish_here(ask(tmp_path, checkpoint))
    scorer = torch.export.load(published / "model.pt2").module()
    more = torch.ones(9, 3)
    with torch.no_grad():
        assert torch.allclose(scorer(more), model(more))


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        ("two_faced", "model.pt2 does not score as the checkpoint does; nothing was published"),
        ("other", "do not fit the model: .*Missing key"),
        ("no_inference", "returned a int; return an Inference"),
        ("broken", "failed: KeyError"),
        ("nowhere", "failed: AttributeError"),
    ],
)
def test_what_is_not_as_the_checkpoint_is_not_published(tmp_path: Path, factory: str, reason: str) -> None:
    checkpoint, _ = saved(tmp_path)
    request = ask(tmp_path, checkpoint, factory)
    assert work(request) == FAILED
    found = status(request)
    assert (found.state, found.tries, found.published) == ("failed", 1, None)
    assert found.reason is not None
    assert re.search(reason, " ".join(found.reason.split())), found.reason
    assert not (tmp_path / "out" / "current").exists()
    assert [path for path in (tmp_path / "out").iterdir() if path.name.startswith("step-")] == []


def test_storage_that_fails_is_tried_again(tmp_path: Path) -> None:
    checkpoint, _ = saved(tmp_path)
    request = ask(tmp_path, checkpoint, "flaky", arguments={"count": str(tmp_path / "count")})
    assert work(request) == AGAIN
    assert status(request).state == "working"
    assert work(request) == DONE
    assert status(request).tries == 2


def test_a_checkpoint_waits_for_its_publisher(tmp_path: Path) -> None:
    first, _ = saved(tmp_path, 1)
    request = ask(tmp_path, first)
    checkpointer = Checkpointer(tmp_path / "checkpoints", mode="blocking", keep=1)
    checkpointer.save({"model": Scorer()}, step=2, position=2)
    assert first.exists(), "retention took what is to be published"
    assert work(request) == DONE
    checkpointer.save({"model": Scorer()}, step=3, position=3)
    assert not first.exists()


def test_current_never_leads_back(tmp_path: Path) -> None:
    older, _ = saved(tmp_path, 1)
    newer, _ = saved(tmp_path, 2)
    late = ask(tmp_path, older)
    published = publish_here(ask(tmp_path, newer))
    assert publish_here(late) != published
    assert (tmp_path / "out" / "current").resolve() == published


def test_only_one_works_on_a_request(tmp_path: Path) -> None:
    checkpoint, _ = saved(tmp_path)
    request = ask(tmp_path, checkpoint)
    with requests.alone(request) as mine:
        assert mine
        assert work(request) == BUSY
    assert work(request) == DONE
    assert work(request) == DONE  # and nothing is done twice
    assert status(request).tries == 1


@pytest.mark.parametrize("stage", ["begin", "export", "exported", "publish", "published", "done"])
def test_killed_in_any_stage_it_is_finished_by_the_next_try(tmp_path: Path, stage: str) -> None:
    checkpoint, model = saved(tmp_path)
    request = ask(tmp_path, checkpoint)

    class Killed(BaseException):
        """As sudden as a kill: nothing in the publisher takes note of it."""

    def at(now: str) -> None:
        if now == stage:
            raise Killed

    with pytest.raises(Killed):
        work(request, at)
    out = tmp_path / "out"
    if stage not in ("published", "done"):
        assert not (out / "current").exists()
        assert [path for path in out.iterdir() if path.name.startswith("step-")] == []
    assert status(request).state == "working"
    assert requests.pending(out) == [request]
    assert work(request) == DONE
    found = status(request)
    assert found.published is not None
    assert (out / "current").resolve() == found.published
    assert torch.allclose(scores(found.published), model(*INPUTS).detach())
    assert sorted(path.name for path in out.iterdir()) == sorted([".requests", "current", found.published.name])
    assert requests.pending(out) == []


@pytest.mark.parametrize("factory", ["__main__:scorer", "scorer", ":scorer", "module:"])
def test_a_factory_that_no_other_process_finds_is_refused(tmp_path: Path, factory: str) -> None:
    checkpoint, _ = saved(tmp_path)
    with pytest.raises(PublishError, match="give package.module:function"):
        hand_over(checkpoint, factory=factory, out=tmp_path / "out", start=False)


def test_what_is_not_durable_is_not_handed_over(tmp_path: Path) -> None:
    checkpoint, _ = saved(tmp_path)
    (checkpoint / "durable.json").unlink()
    with pytest.raises(CheckpointError, match="was never finished"):
        ask(tmp_path, checkpoint)
    assert not (tmp_path / "out").exists()


def test_a_request_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(PublishError, match="is no request to publish"):
        requests.read(path)
    checkpoint, _ = saved(tmp_path)
    request = ask(tmp_path, checkpoint)
    request.write_text(request.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(PublishError, match="is of version 2, and 1 is read here"):
        requests.read(request)


def test_a_kill_lets_go_of_the_request(tmp_path: Path) -> None:
    checkpoint, _ = saved(tmp_path)
    request = ask(tmp_path, checkpoint)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with requests.alone(request) as mine:
            os.write(writer, b"y" if mine else b"n")
            signal.pause()
    assert os.read(reader, 1) == b"y"
    with requests.alone(request) as mine:
        assert not mine
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    with requests.alone(request) as mine:
        assert mine
