"""The answer of a query in its three forms."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from ipaddress import IPv4Address
from uuid import UUID

import pytest
from rich.console import Console

from ettwatch_app.render import print_table, write_csv, write_json

COLUMNS = ["n", "x", "when", "day", "name", "list", "map", "raw", "id", "ip", "price"]
TYPES = ["UInt64", "Nullable(Float64)", "DateTime64(6, 'UTC')", "Date", "String", "Array(Int8)", "Map(String, Int8)",
         "String", "UUID", "IPv4", "Decimal(9, 2)"]  # fmt: skip
ROW = (
    2**64 - 1,
    float("nan"),
    datetime(2026, 9, 21, 14, 13, 20, 1, UTC),
    date(2026, 9, 21),
    'a,"b"\nc',
    [1, None],
    {"k": (1, 2)},
    b"\xff\x00",
    UUID(int=1),
    IPv4Address("127.0.0.1"),
    Decimal("1.50"),
)


def test_json_has_one_object_for_each_row() -> None:
    out = io.StringIO()
    write_json(COLUMNS, [ROW, ROW], out)
    first, second = out.getvalue().splitlines()
    assert first == second
    assert json.loads(first) == {
        "n": 2**64 - 1,
        "x": None,
        "when": "2026-09-21T14:13:20.000001Z",
        "day": "2026-09-21",
        "name": 'a,"b"\nc',
        "list": [1, None],
        "map": {"k": [1, 2]},
        "raw": "\ufffd\x00",
        "id": "00000000-0000-0000-0000-000000000001",
        "ip": "127.0.0.1",
        "price": "1.50",
    }


def test_csv_quotes_what_must_be_quoted() -> None:
    out = io.StringIO()
    write_csv(["a", "b", "c"], [('x,"y"', None, [1, 2]), (True, 1.5, "z")], out)
    assert out.getvalue() == 'a,b,c\n"x,""y""",,"[1, 2]"\ntrue,1.5,z\n'


def table(columns: list[str], types: list[str], rows: list[tuple[object, ...]]) -> str:
    out = io.StringIO()
    print_table(columns, types, rows, Console(file=out, width=60, markup=False))
    return out.getvalue()


def test_tables_align_numbers_to_the_right() -> None:
    text = table(
        ["job", "n", "x"], ["String", "Int64", "LowCardinality(Nullable(Float64))"], [("a", 5, 1.0), ("bb", 10, None)]
    )
    assert text == ("job   n     x\n"
                    "a     5   1.0\n"
                    "bb   10  NULL\n"
                    "2 rows\n")  # fmt: skip


def test_fractions_are_as_long_as_they_need_to_be() -> None:
    values = [45.42364, 67.8, 1234.5, 0.0, 0.00001234, float("nan"), float("-inf")]
    text = table(["x"], ["Float64"], [(value,) for value in values])
    assert text.split() == ["x", "45.424", "67.8", "1,234.5", "0.0", "1.23e-05", "nan", "-inf", "7", "rows"]


def test_tables_are_safe_from_what_is_in_them() -> None:
    text = table(["[bold]name"], ["String"], [("[red]x[/red]\x1b[2J\r\n:smile:",)])
    assert "[red]x[/red]\\u001b[2J\\u000d\\u000a:smile:" in text
    assert "[bold]name" in text
    assert "\x1b" not in text


def test_without_a_terminal_a_row_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ("x" * 150, "y" * 30)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert table(["a", "b"], ["String", "String"], [row]).splitlines()[1] == "  ".join(row)
    monkeypatch.setenv("COLUMNS", "60")
    assert len(table(["a", "b"], ["String", "String"], [row]).splitlines()) > 3


def test_no_rows_and_no_columns() -> None:
    assert table(["a"], ["Int8"], []) == "a\n0 rows\n"
    assert table([], [], []) == "0 rows\n"
