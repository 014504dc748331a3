import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from ettwatch import Recorder
from ettwatch_trainer import compiling
from ettwatch_trainer.compiling import CompileWatch, phase_of

pytestmark = pytest.mark.torch


class Told:
    """Stands in for a recorder: keeps the phases and when they were open."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.open: list[str] = []

    @contextmanager
    def _span(self, name: str) -> Iterator[None]:
        self.open.append(name)
        yield
        self.open.remove(name)
        self.ended.append(name)

    def phase(self, name: str) -> AbstractContextManager[None]:
        return self._span(name)


def watch(told: Told, *, enabled: bool = True) -> CompileWatch:
    return CompileWatch(cast(Recorder, told), enabled=enabled)


def test_a_compilation_is_a_phase_and_so_is_a_recompilation() -> None:
    told = Told()
    double = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    with watch(told) as watching:
        with watching.first_step():
            double(torch.ones(3))
            assert told.ended == ["pt2_compilation.forward"]
        double(torch.ones(3))
        assert told.ended == ["pt2_compilation.forward"]
        double(torch.ones(4))
        assert told.ended == ["pt2_compilation.forward", "pt2_compilation.recompile"]
    assert told.open == []
    double(torch.ones(5))
    assert len(told.ended) == 2


def test_without_dynamos_callbacks_the_first_step_is_the_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setitem(sys.modules, "torch._dynamo.callback", None)
    with watch(told) as watching:
        with watching.first_step():
            assert told.open == ["pt2_compilation"]
        assert told.ended == ["pt2_compilation"]


def test_where_nothing_is_compiled_nothing_is_told() -> None:
    told = Told()
    with watch(told, enabled=False) as watching, watching.first_step():
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert told.ended == []


@pytest.mark.parametrize(
    ("trigger", "number", "phase"),
    [
        ("DYNAMO", "0/0", "pt2_compilation.forward"),
        ("LAZY_BACKWARD", "0/0", "pt2_compilation.backward"),
        ("DYNAMO", "0/1", "pt2_compilation.recompile"),
        ("LAZY_BACKWARD", "3/2", "pt2_compilation.recompile"),
    ],
)
def test_the_phase_of_a_compilation(trigger: str, number: str, phase: str) -> None:
    what = SimpleNamespace(callback_trigger=SimpleNamespace(name=trigger), compile_id=number)
    assert phase_of(what) == phase


def test_a_callback_of_unknown_shape_is_still_a_compilation() -> None:
    assert phase_of(None) == "pt2_compilation.forward"


def test_without_a_compiler_graphs_are_captured_and_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert compiling.backend() == "aot_eager"
