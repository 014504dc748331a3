"""Dynamic shapes: recompiles are seen with their guard, written down, and do not come back in the next run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_trainer.remedies.shapes import Mark, Marks, ShapeWatch
from support.remedies_recorder import Told

pytestmark = [
    pytest.mark.torch,
    # What torch says of itself when inductor is first used.
    pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning"),
]


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Batch(NamedTuple):
    dense: torch.Tensor
    ids: torch.Tensor


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.table = torch.nn.Embedding(9, 4)

    def forward(self, batch: Batch, more: dict[str, list[torch.Tensor]], scale: int = 1) -> torch.Tensor:
        rows = torch.relu(self.layer(batch.dense)) + self.table(batch.ids)
        total: torch.Tensor = rows.sum() * scale + more["x"][0].sum()
        return total


def net(backend: str = "eager") -> Net:
    torch.manual_seed(2)
    model = Net()
    model.compile(backend=backend, dynamic=False)
    return model


def call(rows: int, extra: int = 3) -> tuple[Batch, dict[str, list[torch.Tensor]]]:
    chance = torch.Generator().manual_seed(rows)
    batch = Batch(torch.randn(rows, 4, generator=chance), torch.randint(9, (rows,), generator=chance))
    return batch, {"x": [torch.randn(extra, generator=chance)]}


def run(model: Net, marks: Marks, sizes: list[tuple[int, int]]) -> tuple[ShapeWatch, list[torch.Tensor]]:
    losses = []
    with ShapeWatch() as watch:
        for rows, extra in sizes:
            given_now = call(rows, extra)
            marks.apply(model, *given_now)
            losses.append(model(*given_now))
    return watch, losses


def places(marks: Marks) -> set[tuple[str, int]]:
    return {(mark.source, mark.dim) for mark in marks.marks}


SIZES = [(8, 3), (9, 3), (16, 5), (33, 7)]


def test_the_next_run_does_not_compile_again(tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    compiled = []
    for _ in range(2):
        torch.compiler.reset()
        known = Marks.load(path).marks
        watch, _losses = run(net(), known, SIZES)
        watch.marks(known).save(path)
        compiled.append(len(watch.recompiles))
    assert compiled[0] == 3, "the sizes do not make for recompiles, so nothing is tested"
    assert compiled[1] == 0, "marked, and compiled again all the same"
    assert places(Marks.load(path).marks) == {("batch.dense", 0), ("batch.ids", 0), ("more['x'][0]", 0)}


def test_each_recompile_is_told_with_its_guard() -> None:
    told = Told()
    model = net()
    with ShapeWatch(told.recorder) as watch:
        model(*call(8))
        assert not watch.recompiles
        model(*call(9))
        seen = watch.recompiles[0]
        assert len(watch.recompiles) == 1
        assert (seen.function, seen.dim) == ("Net.forward", 0)
        assert seen.source in ("batch.dense", "batch.ids"), "torch checks one of them first"
        assert (seen.expected, seen.actual) == (8, 9)
        assert seen.place.startswith(__file__)
        model(*call(9), scale=2)
    assert [(phase.name, phase.outcome) for phase in told.phases] == [("pt2_compilation.recompile", "ok")] * 2
    assert told.phases[0].attrs == {"guard": f"tensor '{seen.source}' size mismatch at index 0. expected 8, actual 9"}
    assert told.phases[1].attrs["guard"].startswith("scale == 1")
    assert [recompile.source for recompile in watch.recompiles] == [seen.source, None]
    assert places(watch.marks()) == {("batch.dense", 0), ("batch.ids", 0)}
    before = len(watch.recompiles)
    model(*call(11))
    assert len(watch.recompiles) == before, "it still listens after its end"


def test_what_was_known_before_stays_known() -> None:
    before = Marks((Mark("Other.forward", "x", 1, "seen long ago"),))
    watch, _ = run(net(), before, [(8, 3), (9, 3)])
    assert before.marks[0] in watch.marks(before).marks
    assert len(watch.marks(before).marks) == 3


def test_a_reset_of_the_compiler_is_survived() -> None:
    model = net()
    with ShapeWatch() as watch:
        model(*call(8))
        model(*call(9))
        assert len(watch.recompiles) == 1
        torch.compiler.reset()
        model(*call(8))
        model(*call(12))
    assert len(watch.recompiles) == 2


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_losses_and_gradients_are_those_of_static_shapes(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "1")
    if backend == "inductor":
        sizes = [(8, 3), (16, 3)]
        marks = Marks((Mark("Net.forward", "batch.dense", 0), Mark("Net.forward", "batch.ids", 0)))
    else:
        sizes = SIZES
        marks = Marks((*(Mark("Net.forward", name, 0) for name in ("batch.dense", "batch.ids", "more['x'][0]")),))

    def train(known: Marks) -> tuple[int, list[float], list[torch.Tensor]]:
        torch.compiler.reset()
        model = net(backend)
        watch, losses = run(model, known, sizes)
        for loss in losses:
            torch.autograd.backward(loss)
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        return len(watch.recompiles), [loss.item() for loss in losses], gradients

    compiled, losses, gradients = train(Marks())
    again, marked_losses, marked_gradients = train(marks)
    assert (compiled, again) == (len(sizes) - 1, 0)
    assert marked_losses == pytest.approx(losses, rel=1e-5)
    assert len(gradients) == len(marked_gradients) == 3
    for one, other in zip(gradients, marked_gradients, strict=True):
        assert (one - other).abs().max() <= 1e-5 * one.abs().max()


class Fixed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(8, -1).sum()


def test_a_size_that_the_code_needs_is_compiled_for_as_without_a_mark() -> None:
    model = Fixed()
    model.compile(backend="aot_eager", dynamic=False)
    given_now = torch.ones(8, 2)
    assert Marks((Mark("Fixed.forward", "x", 0), Mark("Fixed.forward", "x", 1))).apply(model, given_now) == 2
    assert model(given_now) == 16


def test_marks_that_do_not_fit_are_left_out() -> None:
    model = net()
    odd = [
        "nobody",
        "batch.nobody",
        "batch[7]",
        "more['y']",
        "more['x'][0].shape",
        "__import__('os')",
        "((",
        "",
        "batch",
        "scale",
    ]
    marks = Marks((*(Mark("Net.forward", source, 0) for source in odd), Mark("Net.forward", "batch.dense", 5)))
    assert marks.apply(model, *call(8)) == 0
    assert marks.apply(model) == 0
    assert Marks((Mark("Else.forward", "batch.dense", 0),)).apply(model, *call(8)) == 0
    assert Marks((Mark("Net.forward", "batch.dense", 0),)).apply(torch.compile(Net(), backend="eager"), *call(8)) == 1


def test_a_compiled_function_can_be_marked_as_well() -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    compiled = torch.compile(double, backend="eager", dynamic=False)
    with ShapeWatch() as first:
        for size in (3, 4, 5):
            compiled(torch.ones(size))
    torch.compiler.reset()
    with ShapeWatch() as second:
        for size in (3, 4, 5):
            x = torch.ones(size)
            assert first.marks().apply(compiled, x) == 1
            compiled(x)
    assert (len(first.recompiles), len(second.recompiles)) == (2, 0)


class Other(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_a_module_of_torchs_own_is_marked_through_what_torch_puts_around_it() -> None:
    def used(known: Marks) -> ShapeWatch:
        torch.compiler.reset()
        model: Any = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 2)), backend="eager", dynamic=False)
        with ShapeWatch() as watch:
            for size in (3, 4, 5):
                x = torch.ones(size, 4)
                assert known.apply(model, x) == len(known.marks)
                model(x)
        return watch

    first = used(Marks())
    marks = first.marks()
    assert (len(first.recompiles), places(marks)) == (2, {("args[0]", 0)})
    assert not used(marks).recompiles
    assert marks.apply(Other(), torch.ones(3, 4)) == 0, "that is another model's"


MARKS = st.builds(Mark, st.text(min_size=1), st.text(min_size=1), st.integers(0, 8), st.text())


@given(st.lists(MARKS))
def test_marks_are_read_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, marks: list[Mark]) -> None:
    path = tmp_path_factory.getbasetemp() / "marks.json"
    kept = Marks.of(marks)
    kept.save(path)
    assert Marks.load(path).marks == kept
    assert Marks.load(path).reason is None
    assert Marks.of([*marks, *marks]) == kept


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "null", '{"version":2,"marks":[]}', '{"version":1}', '{"version":1,"marks":7}',
        '{"version":1,"marks":[7]}', '{"version":1,"marks":[{}]}',
        '{"version":1,"marks":[{"function":"f","source":"x","dim":"0"}]}',
        '{"version":1,"marks":[{"function":"f","source":"x","dim":-1}]}',
        '{"version":1,"marks":[{"function":"f","source":7,"dim":0}]}',
        '{"version":1,"marks":[{"function":["f"],"source":"x","dim":0}]}',
        "\udcff",
    ],
)  # fmt: skip
def test_a_bad_file_is_ignored_and_said_why(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shapes.json"
    path.write_text(text, errors="surrogateescape")
    loaded = Marks.load(path)
    assert loaded.marks == Marks()
    assert str(path) in (loaded.reason or "")


def test_a_missing_file_and_a_folder_are_ignored_and_said_why(tmp_path: Path) -> None:
    assert "there is no" in (Marks.load(tmp_path / "none").reason or "")
    assert Marks.load(tmp_path).marks == Marks()
    assert Marks.load(tmp_path).reason


def test_the_file_is_for_people_too(tmp_path: Path) -> None:
    Marks((Mark("Net.forward", "x", 0, "tensor 'x' size mismatch"),)).save(tmp_path / "marks.json")
    read: dict[str, Any] = json.loads((tmp_path / "marks.json").read_text())
    assert read == {
        "version": 1,
        "marks": [{"function": "Net.forward", "source": "x", "dim": 0, "why": "tensor 'x' size mismatch"}],
    }
