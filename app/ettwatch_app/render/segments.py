"""The timeline of a job as rows."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from ettwatch_app.render.console import plain_table
from ettwatch_app.render.palette import LOOKS
from ettwatch_app.render.text import clean, duration
from ettwatch_schemas import Segment, component_of

_S = 1_000_000


def segments_table(segments: Iterable[Segment], start: int) -> Table:
    """A table of segments, one a row; `start` (µs) is the zero of its times."""
    table = plain_table()
    for name in ("begins after", "lasts", "attempt", "GPUs"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("stage", overflow="fold")
    for part in segments:
        table.add_row(
            duration((part.start - start) / _S),
            duration((part.end - part.start) / _S),
            str(part.attempt),
            f"{part.gpus:,}",
            Text(clean(part.stage, 60), style=LOOKS[component_of(part.stage)].style),
        )
    return table
