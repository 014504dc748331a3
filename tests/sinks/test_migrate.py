import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ettwatch_clickhouse import SchemaRefused, Store, StoreError, migrate, open_embedded
from ettwatch_clickhouse.migrate import Migration, migrations, statements
from support.clickhouse import EVERY_TABLE, EVERY_VIEW, FaultyStore, before

MANY = migrations()


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Store]:
    store = open_embedded(tmp_path / "clickhouse")
    yield store
    store.close()


def test_numbers_have_no_holes_and_names_tell() -> None:
    assert [m.number for m in MANY] == list(range(1, len(MANY) + 1))
    assert all(re.fullmatch(rf"{m.number:04}_[a-z_]+", m.name) for m in MANY)


@pytest.mark.parametrize("migration", MANY, ids=lambda m: m.name)
def test_every_statement_can_be_repeated(migration: Migration) -> None:
    for statement in statements(migration.text):
        assert re.search(r"^(CREATE TABLE IF NOT EXISTS|CREATE OR REPLACE VIEW|ALTER TABLE) ", statement, re.M), (
            statement[:200]
        )
        assert "ADD COLUMN " not in statement.replace("ADD COLUMN IF NOT EXISTS ", "")


def test_statements_end_at_the_end_of_a_line() -> None:
    assert statements("-- a; b\nSELECT ';' ;\n\nSELECT 2;") == ["-- a; b\nSELECT ';'", "SELECT 2"]
    assert statements("-- nothing\n") == []


def test_a_new_database_gets_all_of_them_an_old_one_none(new: Store) -> None:
    assert migrate(new) == [m.name for m in MANY]
    assert migrate(new) == []
    tables = {row[0] for row in new.query("SELECT name FROM system.tables WHERE database = currentDatabase()").rows}
    assert tables == {*EVERY_TABLE, *EVERY_VIEW, "schema_migrations"}


@pytest.mark.parametrize("calls", range(0, 18, 3))
def test_one_that_stopped_half_way_goes_on(new: Store, calls: int) -> None:
    faulty = FaultyStore(new)
    faulty.plan = [None] * calls + [before(StoreError("no"))]
    with pytest.raises(StoreError, match="no"):
        migrate(faulty)
    migrate(new)
    assert migrate(new) == []
    assert new.query("SELECT * FROM jobs").rows == []


def record(store: Store, number: int, name: str, checksum: str) -> None:
    store.insert("schema_migrations", ("number", "name", "checksum", "applied"), [(number, name, checksum, 0)])


def test_a_newer_database_is_refused(new: Store) -> None:
    migrate(new)
    record(new, 99, "0099_future", "x")
    with pytest.raises(
        SchemaRefused, match=r"migration 0099_future, which this ettwatch does not know .*use the newer"
    ):
        migrate(new)


def test_a_changed_migration_is_refused(new: Store) -> None:
    migrate(new)
    new.command("TRUNCATE TABLE schema_migrations")
    record(new, 1, "0001_events", "0123456789abcdef")
    with pytest.raises(SchemaRefused, match="migration 0001_events of the database is not the one .*0123456789ab"):
        migrate(new)


def test_a_gap_is_refused(new: Store) -> None:
    migrate(new)
    new.command("TRUNCATE TABLE schema_migrations")
    record(new, 2, MANY[1].name, MANY[1].checksum)
    with pytest.raises(SchemaRefused, match="migration 0001_events was never applied"):
        migrate(new)


def test_every_column_is_explained(new: Store) -> None:
    migrate(new)
    bare = new.query(
        "SELECT table, name FROM system.columns WHERE database = currentDatabase() AND length(comment) < 5"
    ).rows
    assert bare == []
