"""Goodput as JSON and as a table."""

import json
from collections.abc import Iterable
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from ettwatch_app.goodput.definition import Goodput
from ettwatch_app.render import clean


def as_json(found: Goodput) -> bytes:
    """Return one line of JSON, without its line break."""
    return json.dumps({"definition": "goodput", **asdict(found)}, ensure_ascii=False).encode()


def from_json(line: bytes) -> Goodput:
    """Return what `as_json` made a line of."""
    told = json.loads(line)
    del told["definition"]
    return Goodput(**told)


def table(found: Iterable[Goodput]) -> Table:
    """Return one row for each job: its goodput, and the largest part of the rest."""
    shown = Table(box=None, pad_edge=False)
    for name, justify in (("job", "left"), ("goodput", "right"), ("total s", "right"), ("productive s", "right")):
        shown.add_column(name, justify=justify, overflow="fold" if justify == "left" else "ellipsis")  # type: ignore[arg-type]
    shown.add_column("disruptions", justify="right")
    shown.add_column("badput, the largest parts")
    for one in found:
        parts = sorted(((us, name) for name, us in one.badput_s.items() if us), reverse=True)[:3]
        shown.add_row(
            Text(clean(one.job, 60)),
            "" if one.goodput_pct is None else f"{one.goodput_pct:.2f} %",
            f"{one.total_s:,.1f}",
            f"{one.productive_s:,.1f}",
            str(one.disruptions),
            ", ".join(f"{name} {seconds:,.1f}" for seconds, name in parts),
        )
    return shown
