"""Whether a database is that of this version, before anything is written."""

from pathlib import Path

import pytest

from ettwatch_clickhouse import SchemaRefused, StoreError, migrate, open_embedded
from ettwatch_clickhouse.migrate import migrations, statements
from ettwatch_clickhouse.schema import check_schema
from support.clickhouse import count


def test_the_schema_has_to_be_this_one(tmp_path: Path) -> None:
    store = open_embedded(tmp_path / "clickhouse")
    try:
        with pytest.raises(SchemaRefused, match="the database has no tables; run `ettwatch migrate` first"):
            check_schema(store)
        migrate(store)
        check_schema(store)
        store.command("DELETE FROM schema_migrations WHERE number = 3")
        with pytest.raises(SchemaRefused, match="no migration 0003_attempts; run `ettwatch migrate`"):
            check_schema(store)
        row = (99, "0099_future", "x", 0)
        store.insert("schema_migrations", ("number", "name", "checksum", "applied"), [row])
        with pytest.raises(SchemaRefused, match="migration 0099_future, which this ettwatch does not know"):
            check_schema(store)
        store.command("RENAME TABLE schema_migrations TO gone")
        store.command("CREATE TABLE schema_migrations (x UInt8) ENGINE = Memory")
        with pytest.raises(StoreError) as caught:
            check_schema(store)
        assert not isinstance(caught.value, SchemaRefused)
    finally:
        store.close()


def test_rows_from_before_the_final_bit_count_as_they_did(tmp_path: Path) -> None:
    store = open_embedded(tmp_path / "clickhouse")
    try:
        before, (last,) = [m for m in migrations() if m.number < 7], [m for m in migrations() if m.number == 7]
        for migration in before:
            for statement in statements(migration.text):
                store.command(statement)
        store.command("SYSTEM STOP MERGES attempts_log")
        columns = ("job", "attempt", "version", "written", "final", "gone", "gpus")
        for job, attempt, version, final, gone, gpus in (
            ("final, then open", 0, 1, True, False, 1),
            ("final, then open", 0, 2, False, False, 2),
            ("open, then final", 0, 1, False, False, 1),
            ("open, then final", 0, 2, True, False, 2),
            ("gone", 0, 1, False, False, 1),
            ("gone", 0, 2, False, True, 2),
        ):
            store.insert("attempts_log", columns, [(job, attempt, version, version, final, gone, gpus)])
        told = "SELECT job, gpus FROM attempts ORDER BY job"
        old = store.query(told).rows
        assert old == [("final, then open", 2), ("open, then final", 2)]
        for statement in statements(last.text):
            store.command(statement)
        assert store.query(told).rows == old
        store.command("SYSTEM START MERGES attempts_log")
        store.command("OPTIMIZE TABLE attempts_log FINAL")
        assert store.query(told).rows == old
        assert count(store, "attempts_log") == 3
        # A final row that is written now wins over each of them; one of version 0 still over none.
        for job in ("final, then open", "open, then final", "gone"):
            store.insert("attempts_log", columns, [(job, 0, 0, 9, True, False, 8)])
        assert store.query(told).rows == old
        store.insert("attempts_log", columns, [("final, then open", 0, 1, 3, True, False, 7)])
        assert store.query(told).rows == [("final, then open", 7), ("open, then final", 2)]
    finally:
        store.close()
