"""What the cookbook answers from rollups is what the truth views say; and the same after corrections."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ettwatch_clickhouse import EmbeddedStore

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


QUESTIONS = _module("_rollup_questions").questions()


def test_there_are_enough_for_dashboards() -> None:
    assert len(QUESTIONS) >= 12


@pytest.mark.parametrize("title", [question.title for question in QUESTIONS])
def test_rollups_say_what_the_timelines_say(fleet: EmbeddedStore, title: str) -> None:
    (question,) = [each for each in QUESTIONS if each.title == title]
    rows = fleet.query(question.rollups).rows
    assert rows
    assert rows == fleet.query(question.truth).rows
