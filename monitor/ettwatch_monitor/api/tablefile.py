"""Rows as a file: CSV that a spreadsheet opens without harm, or Parquet."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel

__all__ = ["KINDS", "Form", "flat", "table_file"]

Form: TypeAlias = Literal["csv", "parquet"]
KINDS: Final[Mapping[str, str]] = {
    "csv": "text/csv; charset=utf-8; header=present",
    "parquet": "application/vnd.apache.parquet",
}
"""Media types."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def flat(rows: Sequence[BaseModel]) -> list[dict[str, Any]]:
    """Return rows without nesting: what stands in a mapping is a column of its own, `components.scheduling`."""
    found = []
    for row in rows:
        told: dict[str, Any] = {}
        for name, value in row.model_dump().items():
            if isinstance(value, dict):
                told |= {f"{name}.{key}": one for key, one in value.items() if not isinstance(one, dict)}
            else:
                told[name] = value
        found.append(told)
    return found


def table_file(rows: Sequence[Mapping[str, Any]], form: Form) -> bytes:
    """Return a file of rows; its columns are all that any row has, in the order in which they come up."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return _csv(columns, rows) if form == "csv" else _parquet(columns, rows)


def _csv(columns: list[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([_harmless(name) for name in columns])
    writer.writerows([_harmless(row.get(name)) for name in columns] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def _harmless(value: object) -> object:
    """A text that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _parquet(columns: list[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    table = pa.table({name: [row.get(name) for row in rows] for name in columns})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()
