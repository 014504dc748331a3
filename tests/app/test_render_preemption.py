"""Whom to preempt, as text: the unit of what is wasted."""

from io import StringIO

import pytest
from rich.console import Console

from ettwatch_app.render import show
from ettwatch_app.render.preemption import plan_parts
from ettwatch_monitor.preempt import Live, Running, rank

S = 1_000_000
NOW = 1_790_000_000 * S


def told(unsaved_s: float, width: int) -> str:
    started = NOW - 3_600 * S
    jobs = [
        Running(
            job=name,
            gpus=gpus,
            state="training",
            started_us=started,
            seen_us=NOW,
            unsaved_s=unsaved_s,
            recovery_s=0.0,
        )
        for name, gpus in (("small", 2), ("large", 8))
    ]
    console = Console(file=StringIO(), width=width, markup=False, highlight=False, emoji=False)
    show(console, *plan_parts(rank(jobs, 2, NOW), Live(jobs, [], {}), 5, width))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("unsaved_s", "wasted", "column", "others"),
    [
        (3_600.0, "2.0 GPU-h", "GPU-h", "8.0"),
        (90.0, "3.0 GPU-min", "GPU-min", "12.0"),
        (3.0, "6.0 GPU-s", "GPU-s", "24.0"),
    ],
)
def test_the_unit_is_that_of_the_largest_amount(unsaved_s: float, wasted: str, column: str, others: str) -> None:
    for width in (60, 100):
        text = told(unsaved_s, width)
        lines = text.splitlines()
        assert lines[0] == f"preempt 1 job: frees 2 for 2 asked for, wastes {wasted}"
        assert column in next(line for line in lines if "GPUs" in line and "lost" in line).split()
        assert others in next(line for line in lines if "large" in line).split()
        assert f"then: {column} that it wastes right after that" in text.replace("\n", " ")
        assert max(map(len, lines)) <= width
