"""The table in its forms: JSON, Markdown, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ettwatch_app.remedies.plan import Variant
from ettwatch_app.remedies.results import Aim, Row, Runs, Spread, aims, rows
from ettwatch_trainer.reference import Slowness


def table_json(slowness: Slowness, runs: Runs, wanted: Sequence[Variant]) -> dict[str, object]:
    """One table with every run that it is made of."""
    return {
        "slowness": {name: asdict(slow) for name, slow in slowness.values.items()},
        "rows": [asdict(row) for row in rows(runs, wanted)],
        "aims": [asdict(aim) for aim in aims(runs)],
        "runs": {name: [run.plain() for run in found] for name, found in runs.items()},
    }


def markdown(title: str, table: Sequence[Row], reached: Sequence[Aim]) -> str:
    """One table and its aims."""
    lines = [f"### {title}", ""]
    lines += [
        "| remedy | acts on | what | before, s | after, s | TTS, s | TTR, s | ETT% | runs | paper |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in table:
        cells = [row.remedy, row.component, row.words, shown(row.before), shown(row.after)]
        cells += [shown(row.tts), shown(row.ttr), shown(row.ett), str(row.runs), row.paper]
        lines.append("| " + " | ".join(cells) + " |")
    if reached:
        lines += ["", "| aim | wanted | reached | |", "|---|---|---|---|"]
        for aim in reached:
            lines.append(f"| {aim.what} | {aim.wanted} | {aim.reached:.1f} | {'met' if aim.met else 'missed'} |")
    return "\n".join(lines) + "\n"


def shown(spread: Spread) -> str:
    """`12.3 (11.9-13.0)`: the median, and from the smallest to the largest."""
    digits = 3 if spread.median < 1 else 1
    return f"{spread.median:.{digits}f} ({spread.least:.{digits}f}-{spread.most:.{digits}f})"
