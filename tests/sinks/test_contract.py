"""What every store keeps to: the embedded engine, and a server."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ettwatch_clickhouse import Store, StoreError, Table, Writer, migrate
from ettwatch_clickhouse.migrate import migrations
from ettwatch_core import Rules
from ettwatch_schemas import encode_event
from support.clickhouse import count, read_truth, should_be
from support.story import START, Story

TYPES = {
    "text": ("String", "it's \\ ü\n\t\0"),
    "small": ("UInt8", 255),
    "big": ("UInt64", 2**64 - 1),
    "signed": ("Int64", -(2**63)),
    "real": ("Float64", 0.1),
    "nothing": ("Nullable(Int64)", None),
    "name": ("LowCardinality(Nullable(String))", "a"),
    "flag": ("Bool", True),
    "list": ("Array(LowCardinality(String))", ["x", "", "y"]),
    "map": ("Map(LowCardinality(String), Int64)", {"a": 1, "b": -1}),
}


def test_values_come_back_as_they_went_in(store: Store) -> None:
    store.command("DROP TABLE IF EXISTS kinds SYNC")
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    store.command(f"CREATE TABLE kinds ({columns}) ENGINE = MergeTree ORDER BY tuple()")
    values = tuple(value for _, value in TYPES.values())
    store.insert("kinds", list(TYPES), [values, values])
    answer = store.query("SELECT * FROM kinds")
    assert answer == Table(list(TYPES), [kind for kind, _ in TYPES.values()], [values, values])
    store.command("DROP TABLE kinds SYNC")


def test_times_are_integers_on_the_way_in_and_aware_on_the_way_out(store: Store) -> None:
    store.command("DROP TABLE IF EXISTS times SYNC")
    store.command("CREATE TABLE times (t DateTime64(6, 'UTC'), n Nullable(DateTime64(6, 'UTC'))) ENGINE = Memory")
    store.insert("times", ["t", "n"], [(1_790_000_000_123_456, None), (7_258_118_399_999_999, 0)])
    rows = store.query("SELECT * FROM times ORDER BY t").rows
    assert rows == [
        (datetime(2026, 9, 21, 14, 13, 20, 123456, UTC), None),
        (datetime(2199, 12, 31, 23, 59, 59, 999999, UTC), datetime(1970, 1, 1, tzinfo=UTC)),
    ]
    store.command("DROP TABLE times SYNC")


@pytest.mark.parametrize(
    ("kind", "value"),
    [("String", "a'b\\c\n{x:Int8}"), ("Array(String)", ["a'", "b"]), ("UInt64", 2**64 - 1), ("String", "ü" * 5_000)],
)
def test_places_for_values_are_filled_safely(store: Store, kind: str, value: Any) -> None:
    assert store.query(f"SELECT {{given:{kind}}} AS x", {"given": value}).rows == [(value,)]


def test_an_answer_without_rows_has_columns(store: Store) -> None:
    answer = store.query("SELECT job, nof FROM jobs WHERE job = {job:String}", {"job": "nobody"})
    assert answer == Table(["job", "nof"], ["String", "UInt32"], [])


@pytest.mark.parametrize(
    ("sql", "code", "words"),
    [
        ("SELECT nothing_of_that_name", 47, "nothing_of_that_name"),
        ("SELECT * FROM no_table", 60, "check the name"),
        ("SELECT * FROM no_database.t", 81, "check the name"),
        ("SELECT FROM WHERE", 62, "Syntax error"),
        ("SELECT throwIf(number = 2, 'stop here') FROM numbers(3)", 395, "stop here"),
    ],
)
def test_a_refused_query_is_one_clear_line(store: Store, sql: str, code: int, words: str) -> None:
    with pytest.raises(StoreError) as caught:
        store.query(sql)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert str(caught.value).startswith("cannot run the query at ")
    assert "\n" not in str(caught.value)
    assert "version" not in str(caught.value)


def test_an_insert_says_which_column_is_wrong(store: Store) -> None:
    with pytest.raises(StoreError, match=r"cannot insert into jobs_log at .*: it has no column nope"):
        store.insert("jobs_log", ["job", "nope"], [("a", 1)])
    with pytest.raises(StoreError, match="cannot insert into jobs_log at .*: a value does not fit: .*no number"):
        store.insert("jobs_log", ["job", "version"], [("a", "no number")])
    with pytest.raises(StoreError, match="cannot insert into no_such_table at "):
        store.insert("no_such_table", ["job"], [("a",)])
    assert count(store, "jobs_log") == 0


def test_an_insert_repeated_with_its_token_is_there_once(store: Store) -> None:
    store.command("SYSTEM STOP MERGES jobs_log")
    for token in ("t1", "t1", "t2"):
        store.insert("jobs_log", ["job", "version", "written"], [("a", 1, 1)], token=token)
    assert count(store, "jobs_log") == 2
    assert count(store, "jobs") == 1
    store.command("SYSTEM START MERGES jobs_log")


def test_nothing_to_insert_is_fine(store: Store) -> None:
    store.insert("jobs_log", ["job"], [])
    assert count(store, "jobs_log") == 0


def test_migrations_are_applied_once(store: Store) -> None:
    assert migrate(store) == []
    numbers = [row[0] for row in store.query("SELECT number FROM schema_migrations ORDER BY number").rows]
    assert numbers == [step.number for step in migrations()]
    assert numbers[:3] == [1, 2, 3]


def test_what_a_writer_writes_is_what_the_views_say(store: Store) -> None:
    story = Story("worked").submitted(labels={"a": "b"}).started(60, gpus=8).phase(120, 150, "trainer_init.device_init")
    story.trains(540).progress(640, 100).progress(4_000, 200).ended(
        4_100, "failed", cause="hardware", exit_code=-9, signal=9
    )
    story.started(4_200, 1).phase(4_200, 4_230, "shutdown.teardown", attempt=1, background=True)
    writer = Writer(store)
    for event in story.events:
        writer.event(event, encode_event(event))
    snap = story.at()
    writer.snapshot(snap)
    assert writer.pending > 0
    assert read_truth(store, "worked") is None
    writer.flush()
    assert writer.pending == 0
    assert read_truth(store, "worked") == should_be(snap)
    rows = store.query("SELECT id, kind, attempt, toUnixTimestamp64Micro(ts), raw FROM events ORDER BY ts, id").rows
    told = sorted((e.id, e.kind, e.attempt, e.ts, encode_event(e).decode()) for e in story.events)
    assert sorted(rows) == told
    assert rows[0][3] == START


def test_rules_are_told_with_the_job(store: Store) -> None:
    writer = Writer(store)
    writer.snapshot(Story("r").submitted().at(rules=Rules()))
    writer.flush()
    assert store.query("SELECT rules_version, status, events, attempts FROM jobs").rows == [("1", "pending", 1, 0)]
