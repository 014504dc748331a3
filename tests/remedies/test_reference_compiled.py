"""The remedies of compilation, each by itself: what is trained is the same, and who comes later has less to compile."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ettwatch_schemas import PhaseEnded, PhaseStarted
from ettwatch_trainer.compiling import backend
from ettwatch_trainer.reference.launch import environment
from ettwatch_trainer.remedies.checkpoints import Checkpointer, read_state
from support.remedies_losses import losses
from support.spooled import events

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(backend() != "inductor", reason="inductor cannot build code here"),
]

NAMES = ("none", "compile_cache", "dynamic_shapes", "autotune")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    argv = [sys.executable, str(Path(__file__).with_name("compiled_alone.py")), str(folder), *NAMES]
    env = {**os.environ, **environment(), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=550, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return folder


def ordered(out: Path) -> list[float]:
    """The losses in the order of steps; of a step that was done twice, both."""
    told = losses(out)
    assert [step for _, step in sorted(told)] == list(range(1, 13))
    return [loss for place in sorted(told) for loss in sorted(told[place])]


def state(out: Path) -> dict[str, torch.Tensor]:
    """Weights and sums of the optimizer at the end."""
    found = Checkpointer(out / "checkpoints").newest()
    assert found is not None
    assert found.step == 12
    parts = {part: read_state(found.path, entry=part) for part in ("model", "optimizer")}
    return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}


def compilations(out: Path, attempt: int = 0) -> dict[str, list[dict[str, Any]]]:
    """What each compilation of an attempt told at its end, by phase."""
    found = [event for event in events(out / "spool") if getattr(event, "attempt", None) == attempt]
    names = {event.span: event.phase for event in found if isinstance(event, PhaseStarted)}
    told: dict[str, list[dict[str, Any]]] = {}
    for event in found:
        if isinstance(event, PhaseEnded) and names[event.span].startswith("pt2_compilation"):
            told.setdefault(names[event.span], []).append(dict(event.attrs or {}))
    return told


@pytest.mark.parametrize("job", ["none-1", "compile_cache-0", "dynamic_shapes-1", "autotune-0"])
def test_an_attempt_that_was_stopped_is_gone_on_from_its_save(out: Path, job: str) -> None:
    attempts = [(out / job / "losses" / f"attempt-{number}-rank-0.jsonl").read_text() for number in (0, 1)]
    steps = [[json.loads(line)["step"] for line in text.splitlines()] for text in attempts]
    assert steps == [list(range(1, 8)), list(range(6, 13))]


@pytest.mark.parametrize(
    ("job", "without"),
    [
        ("compile_cache-0", "none-1"),  # across a stop
        ("compile_cache-1", "none-0"),
        ("dynamic_shapes-0", "none-0"),  # which only learns
        ("autotune-0", "none-1"),
    ],
)
def test_code_from_a_cache_and_a_search_of_kernels_change_no_bit(out: Path, job: str, without: str) -> None:
    assert ordered(out / job) == ordered(out / without)
    one, other = state(out / job), state(out / without)
    assert one.keys() == other.keys()
    assert {name for name in one if not torch.equal(one[name], other[name])} == set()


@pytest.mark.parametrize("without", ["none-0", "none-1"])
def test_code_for_every_size_computes_the_same(out: Path, without: str) -> None:
    """The first job compiled as usual; this one has marked what varied, was stopped, and went on."""
    told, wanted = losses(out / "dynamic_shapes-1"), losses(out / without)
    for place, values in wanted.items():
        assert [max(told[place]), min(told[place])] == pytest.approx([max(values), min(values)], rel=1e-5)
    one, other = state(out / "dynamic_shapes-1"), state(out / without)
    assert one.keys() == other.keys()
    for name, value in other.items():
        assert (one[name] - value).abs().max() <= 1e-5 * value.abs().max(), name


def test_what_varied_is_compiled_for_once(out: Path) -> None:
    first, second = (sum(map(len, compilations(out / f"dynamic_shapes-{number}").values())) for number in (0, 1))
    assert second < first


def test_who_comes_later_finds_the_code(out: Path) -> None:
    """The attempt after the one that was stopped, and the next job."""
    loads = [
        compilations(out / job, attempt)["pt2_compilation.cache_load"][0]["cache"]
        for job, attempt in (("compile_cache-0", 0), ("compile_cache-0", 1), ("compile_cache-1", 0))
    ]
    assert loads == ["miss", "hit", "hit"]


def test_kernels_are_searched_once(out: Path) -> None:
    first, second = (compilations(out / "autotune-0", number)["pt2_compilation.autotune"][0] for number in (0, 1))
    assert (first["cache"], second["cache"]) == ("miss", "hit")
    assert first["searched"] >= 1, "inductor asked for nothing, so nothing is shown"
    assert second["searched"] == 0
