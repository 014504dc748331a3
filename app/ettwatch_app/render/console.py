"""Where rendered things go."""

import os
import sys

from rich.console import Console, RenderableType
from rich.table import Table

_WITHOUT_TERMINAL = 100
_LEAST = 20
_INSTEAD = 80


def stdout_console() -> Console:
    """A console on standard output: as wide as the terminal, 100 columns where there is none.

    `COLUMNS` sets another width (below 20, where nothing can be read, 80 counts); `NO_COLOR` and `TERM=dumb` take
    the colours away.
    """
    return _console(stderr=False)


def stderr_console() -> Console:
    """A console on standard error."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else _WITHOUT_TERMINAL
    console = Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if console.width < _LEAST:
        console.width = _INSTEAD
    return console


def plain_table() -> Table:
    """A table without lines: columns two spaces apart under a bold heading."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", highlight=False)


def show(console: Console, *parts: RenderableType) -> None:
    """Print `parts` one after the other, without the spaces with which tables fill their lines."""
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    console.file.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
