"""The port to ClickHouse: four calls, the same for a server and for the embedded engine."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

__all__ = ["Store", "Table"]


class Table(NamedTuple):
    """The answer to a query. Times are aware datetimes in UTC."""

    columns: list[str]
    types: list[str]
    """ClickHouse's names of the columns' types."""
    rows: list[tuple[object, ...]]


class Store(Protocol):
    """A ClickHouse database. Every call may raise StoreError; StoreUnavailable means that it may work later.

    The calls may come from any thread.
    """

    def command(self, sql: str) -> None:
        """Run a statement that has no answer."""

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> Table:
        """Return the answer to a query, whole.

        Args:
            sql: With places for values as ``{name:Type}``.
            params: The values by name.
        """

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, token: str | None = None
    ) -> None:
        """Insert rows; those of one call become visible together where they fall into one partition.

        Args:
            table: In the database of the store.
            columns: In the order of the values.
            rows: Times are integers in the unit of the column.
            token: The same for a repetition of the same call, which the engine then drops where it can.
        """

    def close(self) -> None:
        """Let go of the connection or the folder. Does nothing the second time."""
