"""docs/tables.md tells what is there, and its queries give what it says."""

import re
from pathlib import Path

import pytest

from ettwatch_clickhouse import EmbeddedStore, Writer
from ettwatch_clickhouse.tables import FLEET_VIEWS, ROLLUP_VIEWS, ROLLUPS
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import decode_event
from support.clickhouse import BASE_TABLES, VIEWS
from support.pretty import pretty

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tables.md").read_text()
CASES = ("01-worked-example", "05-hang-then-timeout", "06-stragglers-and-resize")
EXAMPLES = re.findall(r"```sql\n(.*?)\n```\n\n```text\n(.*?)\n```", PAGE, re.S)


@pytest.mark.parametrize("table", [*VIEWS, *FLEET_VIEWS, *BASE_TABLES, *ROLLUPS, "schema_migrations"])
def test_every_column_is_told_with_type_and_meaning(embedded: EmbeddedStore, table: str) -> None:
    columns = embedded.query(
        "SELECT name, type, comment FROM system.columns WHERE database = currentDatabase() AND table = {table:String} "
        "ORDER BY position",
        {"table": table},
    ).rows
    rows = [f"| `{name}` | `{kind}` | {meaning} |" for name, kind, meaning in columns]
    section = re.search(rf"^### `{table}`\n(.*?)(?=^#|\Z)", PAGE, re.M | re.S)
    assert section
    assert [line for line in section[1].splitlines() if line.startswith("| `")] == rows


@pytest.mark.parametrize("table", [*BASE_TABLES, *ROLLUPS])
def test_engines_and_sort_keys_are_told(embedded: EmbeddedStore, table: str) -> None:
    engine, key = embedded.query(
        "SELECT engine_full, sorting_key FROM system.tables WHERE database = currentDatabase() AND name = {t:String}",
        {"t": table},
    ).rows[0]
    section = re.search(rf"^### `{table}`\n(.*?)^\|", PAGE, re.M | re.S)
    assert section
    assert f"Engine `{str(engine).split(' ', maxsplit=1)[0]}`" in section[1]
    assert f"sorted by `{key}`" in section[1] or f"sorted by `({key})`" in section[1]


def test_the_views_that_keep_the_rollups_are_named(embedded: EmbeddedStore) -> None:
    for view in ROLLUP_VIEWS:
        assert f"| `{view}` |" in PAGE


def test_no_view_of_a_base_table_uses_final(embedded: EmbeddedStore) -> None:
    """But that of segments, where it is measured to cost less."""
    for name, text in embedded.query(
        "SELECT name, create_table_query FROM system.tables WHERE database = currentDatabase() AND engine = 'View'"
    ).rows:
        assert bool(re.search(r"_log( AS \w+)? FINAL\b", str(text), re.I)) == (name == "segments")


@pytest.fixture(scope="module")
def told(engine: EmbeddedStore) -> EmbeddedStore:
    writer = Writer(engine)
    for case in CASES:
        events = [decode_event(line) for line in (ROOT / "tests" / "cases" / f"{case}.jsonl").read_bytes().splitlines()]
        state = JobState(events[0].job)
        for event in events:
            apply(state, event, Rules())
            writer.event(event, b"{}" if event.kind != "progress" else event.model_dump_json().encode())
        writer.snapshot(snapshot(state, Rules()))
    writer.flush()
    return engine


def test_there_are_enough_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize(("query", "answer"), EXAMPLES)
def test_the_examples_give_what_they_say(told: EmbeddedStore, query: str, answer: str) -> None:
    assert pretty(told, query) == answer.splitlines()
