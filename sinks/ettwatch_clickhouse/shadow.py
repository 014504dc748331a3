"""Tables that are filled out of sight and then take the place of the visible ones, all at once."""

import contextlib
from typing import Final

from ettwatch_clickhouse.errors import StoreError
from ettwatch_clickhouse.rows import ATTEMPT_KEY, PHASE_KEY
from ettwatch_clickhouse.store import Store
from ettwatch_clickhouse.tables import DERIVED, SHADOW

__all__ = ["Shadows"]

_MARKED: Final = {"attempts_log": ATTEMPT_KEY, "phases_log": PHASE_KEY}


class Shadows:
    """Empty copies of the derived tables.

    Args:
        store: The database.

    Raises:
        StoreError: They cannot be made.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.since = self._newest_write()
        """Number of the newest write before the rebuild began."""
        self.drop()
        for table in DERIVED:
            store.command(f"CREATE TABLE {table}{SHADOW} AS {table}")

    def _newest_write(self) -> int:
        each = " UNION ALL ".join(f"SELECT max(written) AS newest FROM {table}" for table in DERIVED)
        newest = self._store.query(f"SELECT max(newest) FROM ({each})").rows[0][0]
        assert isinstance(newest, int)
        return newest

    def keep(self, jobs_sql: str) -> None:
        """Take over the visible rows of the jobs that a query names."""
        for table in DERIVED:
            self._store.command(f"INSERT INTO {table}{SHADOW} SELECT * FROM {table} WHERE job IN ({jobs_sql})")

    def mark_final(self, written: int) -> None:
        """Mark as final what is marked so in the visible tables.

        A writer that lives on does not speak of it again, and would take back what looks open.

        Args:
            written: Number of the write.
        """
        for table, key in _MARKED.items():
            keys = ", ".join(key)
            self._store.command(
                f"INSERT INTO {table}{SHADOW} SELECT * REPLACE (true AS final, toUInt64({written}) AS written) FROM ("
                f"SELECT * FROM {table}{SHADOW} "
                f"WHERE NOT final AND NOT gone AND ({keys}) IN (SELECT {keys} FROM {table} WHERE final))"
            )

    def swap(self) -> None:
        """Make these tables the visible ones.

        What a living writer wrote meanwhile is taken along, before the swap and once more after it: a row that is
        there twice does no harm.
        """
        self._take_along(DERIVED, [table + SHADOW for table in DERIVED])
        self._store.command("EXCHANGE TABLES " + ", ".join(f"{table} AND {table}{SHADOW}" for table in DERIVED))
        self._take_along([table + SHADOW for table in DERIVED], DERIVED)

    def _take_along(self, sources: "list[str] | tuple[str, ...]", targets: "list[str] | tuple[str, ...]") -> None:
        for source, target in zip(sources, targets, strict=True):
            self._store.command(f"INSERT INTO {target} SELECT * FROM {source} WHERE written > {self.since}")

    def drop(self) -> None:
        """Drop the tables, or what an interrupted rebuild left of them."""
        for table in DERIVED:
            self._store.command(f"DROP TABLE IF EXISTS {table}{SHADOW} SYNC")

    def clear_up(self) -> None:
        """Drop the tables after an error, as far as that works."""
        with contextlib.suppress(StoreError):
            self.drop()
