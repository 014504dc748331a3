"""The answer of a query: as a table, as JSON lines, as CSV."""

import csv
import json
import math
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import IO

from rich.console import Console
from rich.text import Text

from ettwatch_app.render.console import show
from ettwatch_app.render.fitting import fitted
from ettwatch_app.render.text import clean, count

_WIDEST = 100_000
_NUMBERS = ("Int", "UInt", "Float", "Decimal")


def print_table(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[object]], console: Console
) -> None:
    """Print rows under their names; numbers to the right.

    In a terminal no word is broken: what does not fit beside each other stands in lines of its own. Where there is no
    terminal no row is broken into lines.
    """
    bare = [kind.removeprefix("LowCardinality(").removeprefix("Nullable(") for kind in types]
    right = {i for i, kind in enumerate(bare) if kind.startswith(_NUMBERS)}
    cells = [[clean(_shown(value), 2_000) for value in row] for row in rows]
    # Into a file or another program a row is a line, however long.
    endless = not console.is_terminal and not os.environ.get("COLUMNS")
    before = console.width
    if endless:
        console.width = _WIDEST
    table = fitted([clean(name) for name in columns], cells, right, console.width) if columns else ()
    show(console, *table, Text(count(len(rows), "row"), style="dim"))
    console.width = before


def write_json(columns: Sequence[str], rows: Iterable[Sequence[object]], out: IO[str]) -> None:
    """Write one JSON object for each row and line: times as RFC 3339, NaN and infinities as null."""
    for row in rows:
        pairs = {name: _plain(value) for name, value in zip(columns, row, strict=True)}
        out.write(json.dumps(pairs, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[object]], out: IO[str]) -> None:
    """Write rows as CSV under their names; nested values as JSON, null as nothing."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(value) for value in row])


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{round(value, 3):,}" if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"
    return "NULL" if value is None else _cell(value)


def _cell(value: object) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False)


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return str(value)
