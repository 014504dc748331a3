"""A Store over a clickhouse-connect client, whatever it talks to."""

import contextlib
import logging
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError

from ettwatch_clickhouse.errors import StoreError, code_of, os_error, reason, store_error
from ettwatch_clickhouse.store import Table

__all__ = ["ClientStore"]

_INSERT_SETTINGS: Final[dict[str, Any]] = {
    # An acknowledged insert must be there: no server-side buffer in between.
    "async_insert": 0,
    # One replay may span many months.
    "max_partitions_per_insert_block": 0,
}

# The driver logs what it raises as well; without a handler that would end on standard error.
logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())

_SELECT: Final = re.compile(r"\s*(SELECT|WITH)\b", re.I)


class ClientStore:
    """A Store over a clickhouse-connect client.

    Args:
        client: Closed with the store.
        where: The address or folder, for messages.
    """

    def __init__(self, client: Client, where: str) -> None:
        self._client = client
        self._where = where
        self._types: dict[str, dict[str, str]] = {}
        self._closed = False

    def command(self, sql: str) -> None:
        """Run a statement that has no answer."""
        with self._told(_first_words(sql)):
            self._client.command(sql)

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> Table:
        """Return the answer to a query, whole."""
        with self._told("run the query"):
            values = dict(params) if params else None
            answer = self._client.query(sql, parameters=values)
            if not answer.column_names and _SELECT.match(sql):
                return self._empty(sql, values)
            types = [kind.name for kind in answer.column_types]
            return Table(list(answer.column_names), types, [tuple(row) for row in answer.result_rows])

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, token: str | None = None
    ) -> None:
        """Insert rows."""
        if not rows:
            return
        settings = dict(_INSERT_SETTINGS)
        if token is not None:
            settings["insert_deduplication_token"] = token
        with self._told(f"insert into {table}"):
            types = self._column_types(table)
            missing = [name for name in columns if name not in types]
            if missing:
                raise StoreError(f"cannot insert into {table} at {self._where}: it has no column {missing[0]}")
            self._client.insert(
                table,
                rows,
                column_names=list(columns),
                column_type_names=[types[name] for name in columns],
                settings=settings,
            )

    def close(self) -> None:
        """Let go of the connection or the folder."""
        if not self._closed:
            self._closed = True
            self._client.close()

    def _empty(self, sql: str, values: dict[str, Any] | None) -> Table:
        """An answer without rows comes without columns: ask for them."""
        try:
            described = self._client.query(f"DESCRIBE ({sql.strip().rstrip(';')}\n)", parameters=values).result_rows
        except ClickHouseError:
            described = []
        return Table([str(row[0]) for row in described], [str(row[1]) for row in described], [])

    def _column_types(self, table: str) -> dict[str, str]:
        # Asked once: the driver would ask before every insert.
        if table not in self._types:
            answer = self._client.query(f"DESCRIBE TABLE {table}")
            self._types[table] = {str(row[0]): str(row[1]) for row in answer.result_rows}
        return self._types[table]

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except ClickHouseError as e:
            message = str(e)
            code = getattr(e, "code", None) or code_of(message)
            away = code is None and isinstance(e, OperationalError)
            raise store_error(what, self._where, message, code=code, away=away) from e
        except OSError as e:
            raise os_error(what, self._where, e) from e
        except (ValueError, TypeError, AttributeError, OverflowError, struct.error) as e:  # the driver's conversion
            raise StoreError(f"cannot {what} at {self._where}: a value does not fit: {reason(str(e))}") from e


def _first_words(sql: str) -> str:
    words = sql.split()[:4]
    return "run " + " ".join(words) if words else "run an empty statement"
