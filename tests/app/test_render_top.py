"""`ettwatch top` as text: what does not fit, and small fleets."""

from io import StringIO
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel
from rich.console import Console

from ettwatch_app.render.palette import LOOKS, ORDER
from ettwatch_app.render.top import draw_top
from ettwatch_monitor.api.shapes import Figures, Group, JobRow
from ettwatch_monitor.top import Look

Shape = TypeVar("Shape", bound=BaseModel)

_SHARES = dict(zip(ORDER, (72.6, 0.4, 0.8, 5.3, 6.1, 9.9, 4.9), strict=True))


def some(shape: type[Shape], **known: Any) -> Shape:
    """A value of which only these fields are there: no others are drawn."""
    return shape.model_construct(None, **known)


def figures(total_gpu_h: float) -> Figures:
    known = {"ett_pct": 72.6, "total_gpu_h": total_gpu_h, "lost_gpu_h": total_gpu_h * 0.274, "nof": 96}
    known |= {"tts_p50_s": 1_374.0, "ttr_p50_s": 29.8}
    return some(Figures, **known)


def look(total_gpu_h: float = 41_090.0, **changes: object) -> Look:
    lost = total_gpu_h * 0.274
    job = {"job": "feed-ranker-12", "status": "training", "team": "feed", "model": "m", "attempts": 4, "gpus": 128}
    job |= {"ett_pct": 61.2, "nof": 3, "worst_stage": "wasted_training.rework", "lost_gpu_h": lost / 2}
    values: dict[str, object] = {
        "at_us": 1_790_000_000_000_000,
        "hours": 24,
        "statuses": {"training": 41, "recovering": 3},
        "total": figures(total_gpu_h),
        "components": {name: total_gpu_h * part / 100 for name, part in _SHARES.items()},
        "groups": [
            some(Group, key="feed", lost_gpu_h=lost, before_lost_gpu_h=None, figures=figures(total_gpu_h)),
            some(Group, key=None, lost_gpu_h=lost / 10, before_lost_gpu_h=lost / 20, figures=None),
        ],
        "by": "team",
        "jobs": [some(JobRow, **job)],
        "alerts": [],
    }
    return Look(**(values | changes))  # type: ignore[arg-type]


def drawn(seen: Look, width: int, height: int = 24) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height)
    console.print(draw_top(seen, width, height))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def legend(lines: list[str]) -> str:
    bar = next(i for i, line in enumerate(lines) if set(line) <= set("=SHICWD") and line)
    return " ".join(lines[bar + 1 : lines.index("", bar)])


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_every_letter_of_the_bar_is_explained(width: int) -> None:
    lines = drawn(look(), width)
    told = legend(lines)
    for name in ORDER:
        assert f"{LOOKS[name].letter} {name.replace('_training', '')} {_SHARES[name]} %" in told
    assert not any("\N{HORIZONTAL ELLIPSIS}" in line for line in lines[: lines.index("")])


def test_where_the_legend_has_no_room_the_smallest_parts_are_left_out() -> None:
    lines = drawn(look(), 40)
    told = legend(lines)
    assert "= effective 72.6 %" in told
    assert "W wasted 9.9 %" in told
    assert "scheduling" not in told
    assert max(map(len, lines)) <= 40


@pytest.mark.parametrize(("width", "clock"), [(70, False), (100, True), (200, True)])
def test_of_the_first_lines_the_clock_is_dropped_first(width: int, clock: bool) -> None:
    text = "\n".join(drawn(look(), width)[:2])
    assert "lost 11,259 of 41,090 GPU-h" in text
    assert "TTS 22m 54s  TTR 29.8 s  96 failures" in text.replace("\n", "  ")
    assert "41 training, 3 recovering" in text
    assert ("14:13:20 UTC" in text) == clock


def test_in_a_narrow_terminal_no_figure_is_cut() -> None:
    lines = drawn(look(), 80)
    head = next(line for line in lines if line.startswith("job"))
    assert head.split() == ["job", "status", "GPUs", "failures", "ETT", "lost", "GPU-h", "most", "lost", "to"]
    assert any("training   128         3  61.2 %     5,629.3  wast" in line for line in lines)


def test_a_small_fleet_is_told_in_what_says_something() -> None:
    text = "\n".join(drawn(look(47.7 / 3_600), 100))
    assert "lost 13.1 of 47.7 GPU-s" in text
    assert "team       lost GPU-s  before" in text
    assert "feed             13.1       -" in text
    assert "(no team)         1.3     0.7" in text
    assert "training   128         4         3  61.2 %         6.5" in text


def test_a_fleet_without_anything_is_drawn() -> None:
    nothing = some(Figures, ett_pct=None, total_gpu_h=0.0, lost_gpu_h=0.0, tts_p50_s=None, ttr_p50_s=None, nof=0)
    lines = drawn(look(total=nothing, components={}, groups=[], jobs=[], statuses={}), 100)
    assert "ETT -  last 24 h  lost 0.00 of 0.00 GPU-h  TTS -  TTR -  0 failures  no live job  0 alerts" in lines[0]
