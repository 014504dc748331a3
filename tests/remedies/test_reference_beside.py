"""What of start-up waits for what: with steps that end only when those that they need not wait for have begun."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ettwatch_trainer.reference.beside import beside_each_other
from ettwatch_trainer.reference.start import Steps
from support.remedies_recorder import Told

pytestmark = pytest.mark.torch

LONGEST = 60.0


class Meeting:
    """Steps of start-up that note when they begin. `while_begun`: for a step, those that must begin before it ends."""

    def __init__(self, while_begun: dict[str, set[str]], *, compile_cache: bool = False) -> None:
        self.config = SimpleNamespace(startup_s=2 * LONGEST, compile_cache=compile_cache)
        self.recorder = Told().recorder
        self.began: dict[str, threading.Event] = {}
        self.order: list[str] = []
        self.late: list[tuple[str, str]] = []
        self._while_begun = while_begun
        self.saving = SimpleNamespace(newest=self._step("newest", 3), read_ahead=self._step("read"))
        self.compiled = SimpleNamespace(ahead=self._step("compile"), evaluation=self._step("evaluation"))
        self.join, self.metadata, self.dense = self._step("join"), self._step("metadata", []), self._step("dense")
        self.reader = self._step("reader", ("first batch", "reader"))
        self.engine, self.restore, self.connect = self._step("engine"), self._step("restore"), self._step("connect")

    def _step(self, name: str, result: Any = None) -> Any:
        self.began[name] = threading.Event()

        def call(*_needed: Any) -> Any:
            self.order.append(name)
            self.began[name].set()
            self.late += [
                (name, other)
                for other in sorted(self._while_begun.get(name, ()))
                if not self.began[other].wait(LONGEST)
            ]
            return result

        return call


@pytest.mark.parametrize("compile_cache", [False, True])
def test_nothing_waits_for_the_stream_and_no_first_step_for_another(compile_cache: bool) -> None:
    first = {"join", "read", "dense"}
    meeting = Meeting(
        {
            "newest": first,
            **{name: {*first, "newest", "reader"} for name in first},
            "reader": {"metadata", "compile", "engine", "restore", "connect", "evaluation"},
        },
        compile_cache=compile_cache,
    )
    started: Any = beside_each_other(cast("Steps", meeting))
    assert meeting.late == []
    assert (started.first, started.reader) == ("first batch", "reader")


@pytest.mark.parametrize("compile_cache", [False, True])
def test_what_talks_to_other_ranks_has_one_order(compile_cache: bool) -> None:
    meeting = Meeting({}, compile_cache=compile_cache)
    beside_each_other(cast("Steps", meeting))
    speaks = ["join", "metadata", "restore", "connect", "evaluation"]
    assert [name for name in meeting.order if name in speaks] == speaks
    if compile_cache:
        assert meeting.order.index("metadata") < meeting.order.index("compile")  # ranks compile in turn: they have met
