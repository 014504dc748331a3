"""docs/cookbook.md: its queries give what it says, and what the timelines say where it asks the rollups.

`UPDATE_DOCS=1 pytest tests/cookbook` writes the answers anew; look at the difference.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from ettwatch_clickhouse import EmbeddedStore, migrate, open_embedded
from support.fleet import fill
from support.pretty import pretty

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "cookbook.md"
QUESTION: Final = re.compile(r"^### (.+?)\n(.*?)^```sql\n(.*?)^```\n\n```text\n(.*?)^```", re.M | re.S)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    store = open_embedded(tmp_path_factory.mktemp("cookbook") / "clickhouse")
    try:
        migrate(store)
        fill(store)
        yield store
    finally:
        store.close()


def test_there_are_enough_questions() -> None:
    titles = [found[1] for found in QUESTION.finditer(PAGE.read_text("utf-8"))]
    assert len(titles) >= 25
    assert len(set(titles)) == len(titles)
    assert PAGE.read_text("utf-8").count("\n### ") == len(titles)


def test_the_answers_are_what_the_queries_give(fleet: EmbeddedStore) -> None:
    page = PAGE.read_text("utf-8")

    def fresh(found: re.Match[str]) -> str:
        answer = pretty(fleet, found[3])
        assert len(answer) > 2, f"{found[1]}: there is no answer"
        told = "".join(line + "\n" for line in answer)
        return f"### {found[1]}\n{found[2]}```sql\n{found[3]}```\n\n```text\n{told}```"

    written = QUESTION.sub(fresh, page)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(written, "utf-8")
        page = written
    assert written == page


@pytest.mark.parametrize("words", ["FINAL", "_log", "rollup_"])
def test_only_views_are_asked(words: str) -> None:
    assert not [found[1] for found in QUESTION.finditer(PAGE.read_text("utf-8")) if words in found[3]]


def test_a_question_twice_is_answered_alike(fleet: EmbeddedStore) -> None:
    """No answer hangs on the order in which the engine happens to read."""
    for found in QUESTION.finditer(PAGE.read_text("utf-8")):
        sql = found[3]
        assert pretty(fleet, sql) == pretty(fleet, sql, "max_threads = 1, max_block_size = 100"), found[1]


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
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
