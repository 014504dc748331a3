"""The table as a picture: what each remedy acts on, before and after, and where the time of a job goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ettwatch_app.remedies.plan import ALL, BASELINE
from ettwatch_app.remedies.results import Row, Runs
from ettwatch_schemas import COMPONENTS, EFFECTIVE

BEFORE, AFTER = "#9aa4b1", "#1f6f8b"
COLOURS = ("#7a8793", "#a58d5c", "#c2803f", "#8c5b96", "#b5483f", "#5a6e9c")


class NoPictures(RuntimeError):
    """matplotlib is not installed."""


def draw(path: Path, table: Sequence[Row], runs: Runs) -> None:
    """Write a PNG. Raises NoPictures."""
    try:
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot
    except ImportError:
        raise NoPictures("there is no matplotlib, so no picture is drawn: pip install matplotlib") from None
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5), width_ratios=(3, 2))
    _pairs(left, table)
    _shares(right, runs)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _pairs(axes: Any, table: Sequence[Row]) -> None:
    places = range(len(table))
    for shift, colour, side in ((-0.2, BEFORE, "before"), (0.2, AFTER, "after")):
        spreads = [getattr(row, side) for row in table]
        middle = [spread.median for spread in spreads]
        error = [[s.median - s.least for s in spreads], [s.most - s.median for s in spreads]]
        axes.bar([place + shift for place in places], middle, 0.38, yerr=error, color=colour, label=side, capsize=2)
    axes.set_xticks(list(places), [f"{row.remedy}\n{row.words}" for row in table], fontsize=7, rotation=35, ha="right")
    axes.set_ylabel("seconds, median and range")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)  # above: bars are everywhere else


def _shares(axes: Any, runs: Runs) -> None:
    names = [name for name in (BASELINE, ALL) if runs.get(name)]
    below = [0.0] * len(names)
    for part, colour in zip((EFFECTIVE, *COMPONENTS), ("#2f7d4f", *COLOURS), strict=True):
        values = [
            median(run.effective_s if part == EFFECTIVE else run.components[part] for run in runs[name])
            for name in names
        ]
        axes.bar(names, values, 0.5, bottom=below, color=colour, label=part)
        below = [base + value for base, value in zip(below, values, strict=True)]
    axes.set_ylabel("seconds of a job")
    if names:
        axes.legend(frameon=False, fontsize=8, loc="upper right")
