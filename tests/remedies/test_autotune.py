"""Autotuning: within its budget, remembered, and never taken where it is slower or computes something else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ettwatch_trainer.remedies.autotune import Autotune, Budget, Kernel, Memory, Speed, search, tune, tuner
from ettwatch_trainer.remedies.autotune.tuner import distance
from support.remedies_recorder import Told

pytestmark = [
    pytest.mark.torch,
    # What torch says of itself when inductor is first used.
    pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning"),
]


class Clock:
    """Time that goes on, and further when it is told to."""

    passed = 0.0

    def __call__(self) -> float:
        return time.perf_counter() + self.passed


CLOCK = Clock()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long takes no time: a busy machine makes no difference."""
    monkeypatch.setattr(search, "perf_counter", CLOCK)
    monkeypatch.setattr(tuner, "perf_counter", CLOCK)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path / "kernels.json", "key")


class Choice:
    """Stands in for one of inductor's kernels."""

    def __init__(self, operation: str, name: str, library: bool = False) -> None:
        self.name, self.operation, self.library = name, operation, library

    def hash_key(self) -> str:
        return f"stable-{self.name}"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_is_library", lambda choice: choice.library)
    monkeypatch.setattr(search, "_operation", lambda choices: choices[0].operation)


def kernels(operation: str, others: int = 3) -> list[Any]:
    return [*(Choice(operation, f"k{number}") for number in range(others)), Choice(operation, "aten", library=True)]


def names(choices: list[Any]) -> list[str]:
    return [choice.name for choice in choices]


def asked(tuning: Autotune, operation: str, best: str = "k1", took: float = 0.0, others: int = 3) -> list[str]:
    """One operation as inductor would ask for it; the kernels that it may try."""
    kept = tuning._choose(kernels(operation, others))
    if len(kept) > 1:
        CLOCK.passed += took
        tuning._learn({choice: 1.0 if choice.name == best else 2.0 for choice in kept}, "mm", [], kept)
    return names(kept)


@pytest.mark.usefixtures("fake")
def test_what_won_is_the_only_one_that_is_tried_next_time(memory: Memory) -> None:
    first = Autotune(memory)
    assert asked(first, "a") == ["aten", "k0", "k1", "k2"]
    assert (first.searched, first.reused) == (1, 0)
    memory.save()
    again = Autotune(Memory.open(memory.path, "key"))
    assert asked(again, "a") == ["k1"]
    assert asked(again, "b") == ["aten", "k0", "k1", "k2"]
    assert (again.searched, again.reused) == (1, 1)


@pytest.mark.usefixtures("fake")
def test_a_remembered_kernel_that_is_gone_is_searched_for_anew(memory: Memory) -> None:
    memory.kernels["a"] = Kernel("stable-gone", "gone", 1.0, 3)
    assert asked(Autotune(memory), "a", best="k2") == ["aten", "k0", "k1", "k2"]
    assert memory.kernels["a"].name == "k2"


@pytest.mark.usefixtures("fake")
def test_the_budget_bounds_the_kernels_and_keeps_the_librarys(memory: Memory) -> None:
    assert asked(Autotune(memory, Budget(kernels=3)), "a", others=50) == ["aten", "k0", "k1"]
    assert asked(Autotune(memory, Budget(kernels=1)), "b", others=50) == ["aten"]


@pytest.mark.usefixtures("fake")
def test_when_the_seconds_are_used_up_the_librarys_kernel_is_taken_and_not_remembered(memory: Memory) -> None:
    tuning = Autotune(memory, Budget(seconds=100))
    assert len(asked(tuning, "a", took=60.0)) == 4
    # Another as slow as the slowest would not fit.
    assert asked(tuning, "b") == ["aten"]
    assert (tuning.searched, tuning.pruned) == (1, 1)
    assert set(memory.kernels) == {"a"}
    nothing = Autotune(memory, Budget(seconds=0))
    assert asked(nothing, "c") == ["aten"]
    assert asked(nothing, "a") == ["k1"], "what is known costs nothing"


@pytest.mark.usefixtures("fake")
def test_kernels_of_which_none_works_are_not_remembered(memory: Memory) -> None:
    tuning = Autotune(memory)
    kept = tuning._choose(kernels("a"))
    tuning._learn(dict.fromkeys(kept, float("inf")), "mm", [], kept)
    tuning._choose(kernels("b"))
    tuning._learn({}, "mm", [], [])
    assert memory.kernels == {}


def test_choices_that_are_not_understood_are_left_to_inductor(memory: Memory) -> None:
    tuning = Autotune(memory)
    odd: list[Any] = [object(), object()]
    assert tuning._choose(odd) is odd
    tuning._learn({object(): 1.0})


@pytest.mark.parametrize("bad", [{"seconds": -1}, {"seconds": float("nan")}, {"kernels": 0}, {"backends": "CPP"}])
def test_a_budget_that_cannot_work_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Budget(**bad)


def test_settings_hold_in_the_block_only_and_hooks_go(memory: Memory) -> None:
    from torch._inductor import config
    from torch._inductor.select_algorithm import get_algorithm_selector_cache

    everywhere: Any = torch.compiler.config
    selector = get_algorithm_selector_cache()

    def state() -> list[Any]:
        hooks = [len(selector.preprocessing_fns), len(selector.feedback_saver_fns)]
        return [*hooks, config.max_autotune, config.freezing, everywhere.cache_key_tag]

    before = state()
    tags = [before[-1]]

    def tag(budget: Budget | None = None) -> str:
        with Autotune(memory, budget, freeze=True):
            assert config.max_autotune
            assert config.freezing
            tags.append(everywhere.cache_key_tag)
        assert state() == before
        return str(tags[-1])

    assert tag() == tag(), "a restart would not find in torch's caches what was compiled"
    tag(Budget(seconds=1))
    memory.forget("slow")
    tag()
    assert len(set(tags)) == 4, "a search would find what another search had compiled"
    with pytest.raises(RuntimeError, match="in the block"), Autotune(memory):
        raise RuntimeError("in the block")
    assert state() == before


Build = Callable[[dict[str, Any] | None], Callable[[], Any]]


def building(plain_s: float, tuned_s: float, built: list[str], off: float = 0.0) -> Build:
    """What stands in for a compiled step: as slow as is said, and its result off by a share."""

    def build(options: dict[str, Any] | None) -> Callable[[], Any]:
        built.append("plain" if options is None else "tuned")

        def step() -> torch.Tensor:
            CLOCK.passed += plain_s if options is None else tuned_s
            return torch.tensor([1.0, 100.0 * (1 + (0 if options is None else off))])

        return step

    return build


def test_a_faster_step_is_taken_and_taken_again_without_a_search(memory: Memory) -> None:
    built: list[str] = []
    told = Told()
    found = tune(building(20.0, 2.0, built), memory, recorder=told.recorder)
    assert found.tuned
    assert built == ["plain", "tuned"]
    again = tune(building(20.0, 2.0, built), Memory.open(memory.path, "key"), recorder=told.recorder)
    assert (again.tuned, again.reason) == (True, "remembered")
    assert built == ["plain", "tuned", "tuned"]
    assert [phase.name for phase in told.phases] == ["pt2_compilation.autotune"] * 2
    assert [phase.attrs["cache"] for phase in told.phases] == ["miss", "hit"]
    assert told.phases[0].attrs["cache_key"] == "key"


def test_a_wrong_prune_is_found_out_and_not_taken_nor_tried_again(memory: Memory) -> None:
    built: list[str] = []
    found = tune(building(2.0, 20.0, built), memory)
    assert not found.tuned
    assert "with tuned kernels" in found.reason
    built.clear()
    again = tune(building(2.0, 20.0, built), Memory.open(memory.path, "key"))
    assert not again.tuned
    assert built == ["plain"]


def test_remembered_kernels_that_have_become_slow_are_searched_for_anew(memory: Memory) -> None:
    built: list[str] = []
    tune(building(40.0, 2.0, built), memory)
    built.clear()
    slow = Memory.open(memory.path, "key")
    found = tune(building(40.0, 20.0, built), slow)
    assert built == ["tuned", "plain", "tuned"]
    assert found.tuned
    assert "remembered kernels a step takes" in found.reason


def test_another_result_is_refused(memory: Memory) -> None:
    assert tune(building(10.0, 1.0, [], off=0.5e-5), memory).tuned
    other = Memory.open(memory.path.with_name("other"), "key")
    found = tune(building(10.0, 1.0, [], off=1e-3), other)
    assert not found.tuned
    assert "something else" in found.reason
    assert not tune(building(10.0, 1.0, [], off=1e-3), Memory.open(other.path, "key")).tuned


def test_how_far_results_are_apart() -> None:
    one = {"a": torch.tensor([1.0, -4.0]), "b": torch.zeros(2)}
    assert distance(one, {"a": torch.tensor([1.0, -4.0]), "b": torch.zeros(2)}) == 0
    assert distance(one, {"a": torch.tensor([2.0, -4.0]), "b": torch.zeros(2)}) == 0.25
    assert distance(one, {"a": torch.tensor([float("nan"), -4.0]), "b": torch.zeros(2)}) == float("inf")
    assert distance(one, {"a": torch.zeros(3), "b": torch.zeros(2)}) == float("inf")
    assert distance(torch.zeros(0), torch.zeros(0)) == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no choices"), ("[]", "no choices"), ("{}", "no choices"), ('{"version":2}', "version 2"),
        ('{"version":1,"key":"other"}', "another key"), ('{"version":1,"key":"key"}', "no choices"),
        ('{"version":1,"key":"key","kernels":{"a":{}},"speed":null}', "no choices"),
        ('{"version":1,"key":"key","kernels":{},"speed":{"tuned_s":0,"plain_s":1}}', "no choices"),
        ('{"version":1,"key":"key","kernels":{},"speed":{"tuned_s":"1","plain_s":1}}', "no choices"),
    ],
)  # fmt: skip
def test_a_bad_memory_is_ignored_and_said_why(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "kernels.json").write_text(text)
    memory = Memory.open(tmp_path / "kernels.json", "key")
    assert (memory.kernels, memory.speed) == ({}, None)
    assert says in (memory.reason or "")


def test_a_memory_is_read_back_as_it_was_written(memory: Memory) -> None:
    assert "there is no" in (memory.reason or "")
    memory.kernels["a"], memory.speed, memory.searches = Kernel("c", "n", 0.5, 3), Speed(0.1, 0.2), 2
    memory.save()
    read = Memory.open(memory.path, "key")
    assert (read.kernels, read.speed, read.searches, read.reason) == (memory.kernels, memory.speed, 2, None)
    assert json.loads(memory.path.read_text())["version"] == 1


def test_a_memory_that_cannot_be_written_costs_only_the_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    memory = Memory.open(tmp_path / "file" / "kernels.json", "key")
    assert tune(building(20.0, 2.0, []), memory).tuned
    assert "the choices of kernels were not kept" in caplog.text


@pytest.fixture
def nothing_compiled() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_compiled")
def test_inductor_searches_once_and_then_takes_what_is_remembered(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "1")
    torch.manual_seed(1)
    model = torch.nn.Linear(64, 32).eval()
    batch = torch.randn(128, 64)

    def build(options: dict[str, Any] | None) -> Callable[[], torch.Tensor]:
        compiled: Any = torch.compile(model, options=options)

        def step() -> torch.Tensor:
            with torch.no_grad():
                result: torch.Tensor = compiled(batch)
            return result

        return step

    found = tune(build, memory, budget=Budget(seconds=60, kernels=2), freeze=True, steps=1)
    assert found.searched == 1, "inductor asked for nothing, so nothing is tested"
    assert len(memory.kernels) == 1
    expected = model(batch)
    assert (found.step() - expected).abs().max() <= 1e-5 * expected.abs().max()
    torch.compiler.reset()
    known = Memory.open(memory.path, "key")
    assert known.kernels == memory.kernels
    with Autotune(known, freeze=True) as again:
        result = build({"max_autotune_gemm_backends": "ATEN,CPP"})()
    assert (again.searched, again.reused) == (0, 1)
    assert (result - expected).abs().max() <= 1e-5 * expected.abs().max()
