"""A disk that takes nothing of what one attempt writes down for the next: this one trains to its end all the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ettwatch.noop import NoRecorder
from ettwatch_trainer.group import Group
from ettwatch_trainer.reference import ReferenceConfig
from ettwatch_trainer.reference.job import run
from ettwatch_trainer.remedies.checkpoints import Checkpointer

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled:UserWarning"),
]


@pytest.fixture(autouse=True)
def nothing_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("CXX", "none")  # no code is built, and what is compiled again is seen as well
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def test_what_cannot_be_remembered_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    config = ReferenceConfig(
        engine="plain",
        steps=9,
        batch=32,
        batch_sizes=2,
        ranks=1,
        tables=3,
        rows=20,
        dim=4,
        hidden=8,
        fields=2,
        publish=False,
        memory=str(tmp_path / "file" / "memory"),
        out=tmp_path / "out",
    ).only("dynamic_shapes", "compile_cache", "cheap_recovery", "async_checkpoints")
    with caplog.at_level(logging.WARNING):
        assert run(config, NoRecorder(), Group()).step == 9
    found = Checkpointer(config.checkpoints).newest()
    assert found is not None
    assert found.step == 9
    for words in (
        "sizes that vary were not written down",
        "the compile cache was not saved",
        "intervals.json cannot be written",
    ):
        assert words in caplog.text
