"""A table that breaks no word: as wide as it may be, and where it cannot be so narrow, row by row instead."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ettwatch_app.render.console import plain_table

_GAP: Final = 2
_LEAST: Final = 20


def fitted(
    names: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int], width: int
) -> Iterator[RenderableType]:
    """Yield rows under their names, in at most `width` cells. Lines are broken between words, as psql's `\\x auto`.

    Args:
        names: Of the columns.
        rows: Their cells; every row has as many as there are names.
        right: Which columns stand at the right.
        width: Cells of the terminal.
    """
    columns = [[name, *(row[i] for row in rows)] for i, name in enumerate(names)]
    widths = _widths(columns, width)
    if widths is None:
        yield from _records(names, rows)
        return
    table = plain_table()
    for i, name in enumerate(names):
        justify = "right" if i in right else "left"
        table.add_column(Text(name), justify=justify, overflow="fold", width=widths[i])  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*map(Text, row))
    yield table


def _widths(columns: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return how wide each column is; None where words would have to be broken."""
    whole = [max(1, *map(cell_len, column)) for column in columns]
    left = width - _GAP * (len(columns) - 1)
    if sum(whole) <= left:
        return whole
    # What is longer than half a line, such as a path, may be broken: nowhere could it stand beside others.
    most = max(_LEAST, width // 2)
    least = [min(most, max(1, *map(cell_len, " ".join(column).split()))) for column in columns]
    left -= sum(least)
    if left < 0:
        return None
    found = list(least)
    by_need = sorted(range(len(columns)), key=lambda i: whole[i] - least[i])
    for number, i in enumerate(by_need):
        more = min(whole[i] - least[i], left // (len(columns) - number))
        found[i] += more
        left -= more
    return found


def _records(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[RenderableType]:
    for number, row in enumerate(rows, 1):
        yield Text(f"row {number:,}", style="bold")
        table = Table.grid(padding=(0, _GAP, 0, 0))
        table.add_column(style="dim", overflow="fold")
        table.add_column(overflow="fold")
        for name, cell in zip(names, row, strict=True):
            table.add_row(Text(name), Text(cell))
        yield table
