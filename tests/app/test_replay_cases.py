"""The worked cases of the contract, through the command."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ettwatch_app.commands.replay import replay
from ettwatch_schemas import COMPONENTS

CASES = Path(__file__).parent.parent / "cases"
NAMES = sorted(path.name.removesuffix(".jsonl") for path in CASES.glob("*.jsonl"))
US = 1e-6


def summary_of(name: str, *options: str) -> dict[str, object]:
    result = CliRunner().invoke(replay, [str(CASES / f"{name}.jsonl"), *options])
    assert result.exit_code == 0, result.stderr
    summary: dict[str, object] = json.loads(result.stdout)
    return summary


def expected(name: str) -> tuple[dict[str, object], list[str]]:
    wanted = json.loads((CASES / f"{name}.expected.json").read_text())
    now = wanted.pop("now")
    wanted.pop("why")
    return wanted, [] if now is None else ["--now", str(now)]


def test_all_cases_are_here() -> None:
    assert len(NAMES) >= 11


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", [[], ["--lateness", "1000d"], ["--segments"]], ids=["plain", "lateness", "segments"])
def test_case(name: str, mode: list[str]) -> None:
    wanted, now = expected(name)
    got = summary_of(name, *now, *mode)
    for key, value in wanted.items():
        assert got[key] == pytest.approx(value, abs=US), key


@pytest.mark.parametrize("name", NAMES)
def test_segments_are_gapless_and_sum_up_to_the_stages(name: str) -> None:
    _, now = expected(name)
    got = summary_of(name, *now, "--segments")
    parts = got["segments"]
    assert isinstance(parts, list)
    assert [part["start"] for part in parts] == [got["t0"], *(part["end"] for part in parts[:-1])]
    assert parts[-1]["end"] == got["t1"]
    stages: dict[str, int] = {}
    for part in parts:
        stages[part["stage"]] = stages.get(part["stage"], 0) + part["end"] - part["start"]
    assert {stage: us / 1_000_000 for stage, us in stages.items()} == pytest.approx(got["stages"], abs=US)


def test_effective_and_components_are_the_whole() -> None:
    got = summary_of("01-worked-example")
    components, effective = got["components"], got["effective_s"]
    assert isinstance(components, dict)
    assert isinstance(effective, float)
    assert tuple(components) == COMPONENTS
    assert sum(components.values()) + effective == pytest.approx(got["e2e_s"], abs=US)
