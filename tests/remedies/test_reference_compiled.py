"""The remedies of compilation, each by itself: what is trained is the same, and the second job has less to compile."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ettwatch_schemas import PhaseEnded, PhaseStarted
from ettwatch_trainer.compiling import backend
from ettwatch_trainer.reference.launch import environment
from support.spooled import events

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
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


def losses(out: Path) -> list[float]:
    lines = (out / "losses" / "attempt-0-rank-0.jsonl").read_text().splitlines()
    assert len(lines) == 12
    return [json.loads(line)["loss"] for line in lines]


def compilations(out: Path) -> dict[str, list[PhaseEnded]]:
    """What each compilation told at its end, by phase."""
    names = {event.span: event.phase for event in events(out / "spool") if isinstance(event, PhaseStarted)}
    found: dict[str, list[PhaseEnded]] = {}
    for event in events(out / "spool"):
        if isinstance(event, PhaseEnded) and names[event.span].startswith("pt2_compilation"):
            found.setdefault(names[event.span], []).append(event)
    return found


@pytest.mark.parametrize("job", ["compile_cache-0", "compile_cache-1", "autotune-0"])
def test_code_from_a_cache_and_a_search_of_kernels_change_no_bit(out: Path, job: str) -> None:
    assert losses(out / job) == losses(out / "none-0")


def test_code_for_every_size_computes_the_same(out: Path) -> None:
    """The first job compiles as usual; the second has marked what varied, and compiles less often."""
    assert losses(out / "dynamic_shapes-0") == losses(out / "none-0")
    assert losses(out / "dynamic_shapes-1") == pytest.approx(losses(out / "none-0"), rel=1e-5)
    first, second = (sum(map(len, compilations(out / f"dynamic_shapes-{number}").values())) for number in (0, 1))
    assert second < first


def test_the_second_job_finds_the_code_of_the_first(out: Path) -> None:
    told = [compilations(out / f"compile_cache-{number}")["pt2_compilation.cache_load"][0].attrs for number in (0, 1)]
    assert [attrs and attrs["cache"] for attrs in told] == ["miss", "hit"]
