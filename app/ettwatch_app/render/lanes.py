"""The timeline of a job as rows of cells: one lane for each attempt, one cell for each slice of time. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ettwatch_app.render.palette import ORDER
from ettwatch_app.render.views import Mark
from ettwatch_schemas import AttemptSummary, Segment, component_of

_INDEX = {name: index for index, name in enumerate(ORDER)}
_S = 1_000_000
_STEPS = tuple(
    seconds * _S
    for seconds in (
        *(1, 2, 5, 10, 15, 30),
        *(60 * n for n in (1, 2, 5, 10, 15, 30)),
        *(3_600 * n for n in (1, 2, 3, 6, 12)),
        *(86_400 * n for n in (1, 2, 7, 14, 30, 90, 180, 365, 730, 1825, 3650)),
    )
)


class Lane(NamedTuple):
    """One attempt: in each cell the component that took most of its time there (None: no time of this lane)."""

    attempt: int
    cells: list[str | None]
    marks: list[str]
    """In each cell a character of `MARKS`, or a space."""


MARKS = {">": "first batch", "^": "durable checkpoint", "x": "failed or preempted"}


class Tick(NamedTuple):
    """A label of the time axis and the column that it stands for."""

    column: int
    label: str


def lanes(
    segments: Iterable[Segment],
    attempts: Iterable[AttemptSummary],
    marks: Iterable[Mark],
    start: int,
    end: int,
    columns: int,
) -> list[Lane]:
    """Lay the segments of a job between `start` and `end` (µs) over `columns` cells for each attempt."""
    length = max(end - start, 1)
    weights: dict[int, list[list[int] | None]] = {}
    for part in segments:
        row = weights.setdefault(part.attempt, [None] * columns)
        kind = _INDEX[component_of(part.stage)]
        first = _column(part.start - start, length, columns)
        last = _column(part.end - start, length, columns)
        for column in range(first, last + 1):
            # Compare in units of 1/columns µs: the borders of the cells are whole numbers there.
            overlap = min((part.end - start) * columns, (column + 1) * length) - max(
                (part.start - start) * columns, column * length
            )
            if overlap > 0:
                cell = row[column]
                if cell is None:
                    cell = row[column] = [0] * len(ORDER)
                cell[kind] += overlap
    signs: dict[int, dict[int, str]] = {}
    for mark in marks:
        signs.setdefault(mark.attempt, {})[_column(mark.ts - start, length, columns)] = "^"
    for attempt in attempts:
        row_signs = signs.setdefault(attempt.attempt, {})
        if attempt.first_batch is not None:
            row_signs[_column(attempt.first_batch - start, length, columns)] = ">"
        if attempt.outcome in ("failed", "preempted"):
            row_signs[_column(attempt.end - start, length, columns)] = "x"
    return [
        Lane(
            number,
            [None if cell is None else ORDER[cell.index(max(cell))] for cell in weights[number]],
            [signs.get(number, {}).get(column, " ") for column in range(columns)],
        )
        for number in sorted(weights)
    ]


def ticks(length: int, columns: int, spacing: int = 12) -> list[Tick]:
    """Labels for an axis of `length` µs from 0: round times at least `spacing` columns apart."""
    length = max(length, 1)
    step = next((s for s in _STEPS if s * columns >= spacing * length), _STEPS[-1])
    return [
        Tick(at * columns // length, _label(at))
        for at in range(0, length + 1, step)
        if at * columns // length < columns
    ]


def axis(marked: Sequence[Tick], columns: int) -> tuple[str, str]:
    """Draw the axis: a line of labels and a line with a tick under the first character of each."""
    labels = [" "] * columns
    line = ["-"] * columns
    free = 0
    for column, label in marked:
        line[column] = "+"
        if column >= free and column + len(label) <= columns:
            labels[column : column + len(label)] = label
            free = column + len(label) + 1
    return "".join(labels).rstrip(), "".join(line)


def _column(offset: int, length: int, columns: int) -> int:
    return min(max(offset * columns // length, 0), columns - 1)


def _label(us: int) -> str:
    seconds = us // _S
    parts = []
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")):
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0"
