"""What a migration may not do unless it says so and somebody allows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ettwatch_clickhouse import SchemaRefused, Store, migrate, open_embedded
from ettwatch_clickhouse.dangerous import Types, dangers, declared, refuse_dangers
from ettwatch_clickhouse.migrate import Migration, migrations, statements
from support.clickhouse import count


def types() -> Types:
    told = Types()
    for migration in migrations():
        dangers(statements(migration.text), told)
    return told


def test_the_migrations_of_this_version_are_harmless_or_say_so() -> None:
    told = Types()
    for migration in migrations():
        assert not dangers(statements(migration.text), told) or declared(migration.text), migration.name


@pytest.mark.parametrize(
    ("statement", "what", "why"),
    [
        ("DROP TABLE jobs_log", "DROP TABLE jobs_log", "takes something away"),
        ("DROP VIEW jobs", "DROP VIEW jobs", "takes something away"),
        ("DROP DATABASE ettwatch", "DROP DATABASE ettwatch", "takes something away"),
        ("drop\n table /* x */ jobs_log", "drop table jobs_log", "takes something away"),
        ("ALTER TABLE jobs_log DROP COLUMN nof", "DROP COLUMN nof", "takes something away"),
        ("ALTER TABLE jobs_log DROP PARTITION 1", "DROP PARTITION 1", "takes something away"),
        ("ALTER TABLE jobs_log DETACH PARTITION 1", "DETACH PARTITION 1", "takes something away"),
        ("TRUNCATE TABLE jobs_log", "TRUNCATE TABLE jobs_log", "removes all rows"),
        ("DELETE FROM jobs_log WHERE 1", "DELETE FROM jobs_log WHERE", "removes rows"),
        ("ALTER TABLE jobs_log DELETE WHERE 1", "DELETE WHERE 1", "removes rows"),
        ("ALTER TABLE jobs_log UPDATE nof = 1 WHERE 1", "UPDATE nof = 1", "rewrites parts"),
        ("ALTER TABLE jobs_log MATERIALIZE COLUMN ver", "MATERIALIZE COLUMN ver", "rewrites parts"),
        ("ALTER TABLE jobs_log CLEAR COLUMN nof", "CLEAR COLUMN nof", "removes values"),
        ("ALTER TABLE jobs_log MODIFY TTL t1", "MODIFY TTL t1", "removes rows that are older"),
        ("ALTER TABLE jobs_log MODIFY ORDER BY (job, nof)", "MODIFY ORDER BY (", "changes the key"),
        ("ALTER TABLE jobs_log RENAME COLUMN a TO b", "RENAME COLUMN a TO", "takes a name away that somebody may use"),
        ("RENAME TABLE a TO b", "RENAME TABLE a TO", "takes a name away that somebody may use"),
        ("EXCHANGE TABLES a AND b", "EXCHANGE TABLES a AND", "puts something else under a name that somebody uses"),
        ("OPTIMIZE TABLE jobs_log FINAL", "OPTIMIZE TABLE jobs_log FINAL", "rewrites parts"),
        (
            "CREATE OR REPLACE TABLE t (a Int8) ENGINE = Log",
            "CREATE OR REPLACE TABLE",
            "is not repeatable, or replaces",
        ),
        ("CREATE TABLE t (a Int8) ENGINE = Log", "CREATE TABLE t (", "is not repeatable, or replaces"),
        ("INSERT INTO t SELECT 1", "INSERT INTO t SELECT", "is not known to be harmless"),
        ("ALTER TABLE jobs_log FREEZE", "FREEZE", "is not known to be harmless"),
        ("ALTER TABLE jobs_log MODIFY COLUMN nof UInt16", "MODIFY COLUMN nof", "the type from UInt32 to UInt16: parts"),
        ("ALTER TABLE jobs_log MODIFY COLUMN nof UInt64", "MODIFY COLUMN nof", "the type from UInt32 to UInt64: parts"),
        ("ALTER TABLE jobs_log MODIFY COLUMN IF EXISTS nof String", "MODIFY COLUMN IF EXISTS nof", "UInt32 to String"),
        ("ALTER TABLE jobs_log MODIFY COLUMN nope UInt8", "MODIFY COLUMN nope", "from an unknown one to UInt8"),
    ],
)
def test_dangerous(statement: str, what: str, why: str) -> None:
    (found,) = dangers([statement], types())
    assert found.what == what
    assert why in found.why


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE IF NOT EXISTS t (a Int8) ENGINE = MergeTree ORDER BY a",
        "-- DROP TABLE jobs_log\nCREATE OR REPLACE VIEW v (a Int8) AS SELECT 'DROP TABLE x'",
        "ALTER TABLE jobs_log ADD COLUMN IF NOT EXISTS more UInt8, ADD INDEX IF NOT EXISTS i more TYPE minmax",
        "ALTER TABLE jobs_log MODIFY COLUMN nof  UInt32 COMMENT 'the same type'",
        "ALTER TABLE jobs_log MODIFY COLUMN components_us Map(LowCardinality(String),Int64) CODEC(ZSTD(3))",
        "ALTER TABLE jobs_log MODIFY COLUMN nof COMMENT 'no type'",
        "ALTER TABLE jobs_log COMMENT COLUMN nof 'x', MODIFY COMMENT 'y', MODIFY SETTING merge_with_ttl_timeout = 1",
    ],
)
def test_harmless(statement: str) -> None:
    assert dangers([statement], types()) == []


def test_one_command_among_others_is_found() -> None:
    statement = "ALTER TABLE jobs_log ADD COLUMN IF NOT EXISTS x UInt8, DROP COLUMN nof, MODIFY COLUMN job UInt8"
    assert [found.what for found in dangers([statement], types())] == ["DROP COLUMN nof", "MODIFY COLUMN job"]


def test_a_type_is_followed_from_migration_to_migration() -> None:
    told = types()
    assert dangers(["ALTER TABLE jobs_log ADD COLUMN IF NOT EXISTS x UInt8"], told) == []
    assert len(dangers(["ALTER TABLE jobs_log MODIFY COLUMN x UInt16"], told)) == 1
    assert dangers(["ALTER TABLE jobs_log MODIFY COLUMN x UInt16 COMMENT 'x'"], told) == []


def test_a_migration_says_that_it_is_dangerous_in_a_line_of_its_own() -> None:
    assert declared("-- first\n-- dangerous: drops the column x\nALTER ...") == "drops the column x"
    assert declared("-- this is not dangerous: no\nSELECT '-- dangerous: x'") is None
    assert declared("-- dangerous:\nSELECT 1") is None


ONE = ("0001_a", "CREATE TABLE IF NOT EXISTS a (x Int8) ENGINE = MergeTree ORDER BY x")
TWO = ("0002_b", "-- dangerous: a is empty\nDROP TABLE a")


def texts(*pairs: tuple[str, str]) -> list[tuple[str, str, list[str]]]:
    return [(name, text, statements(text)) for name, text in pairs]


def test_what_is_dangerous_needs_leave_and_a_reason() -> None:
    refuse_dangers(texts(ONE, TWO), {"0001_a"}, allowed=False)  # it was applied long ago
    refuse_dangers(texts(ONE, TWO), {"0002_b"}, allowed=True)
    with pytest.raises(SchemaRefused, match="0002_b is dangerous: a is empty; nothing was applied; .*allow-dangerous"):
        refuse_dangers(texts(ONE, TWO), {"0002_b"}, allowed=False)
    with pytest.raises(SchemaRefused, match="0002_b is dangerous and does not say so: DROP TABLE a takes something"):
        refuse_dangers(texts(ONE, ("0002_b", "DROP TABLE a")), {"0002_b"}, allowed=True)


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Store]:
    store = open_embedded(tmp_path / "clickhouse")
    yield store
    store.close()


def test_nothing_is_applied_where_one_is_refused(new: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(new)
    known = migrations()
    number = known[-1].number
    more = [
        Migration(number + 1, f"{number + 1:04}_more", "ALTER TABLE jobs_log ADD COLUMN IF NOT EXISTS x UInt8;"),
        Migration(number + 2, f"{number + 2:04}_less", "-- dangerous: x is lost\nALTER TABLE jobs_log DROP COLUMN x;"),
    ]
    monkeypatch.setitem(migrate.__globals__, "migrations", lambda: [*known, *more])
    with pytest.raises(SchemaRefused, match="_less is dangerous: x is lost"):
        migrate(new)
    assert count(new, "schema_migrations") == len(known)
    assert migrate(new, allow_dangerous=True) == [m.name for m in more]
