"""Goodput by Google's definition, of timelines with a known answer.

The first three were also put to ml-goodput-measurement 0.2.3 itself (GoodputCalculator.get_job_goodput, its entries
given through a stand-in for Cloud Logging): it gives 60 % and 17.777… %, as here, and 96.124 % for the third, where
it takes an outage for a step (docs/goodput.md tells why).
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ettwatch_app.commands.replay import replay
from ettwatch_app.goodput import Goodput, goodput, points_of
from support.imported import Imported, folded
from support.story import Story

CASES = Path(__file__).parent.parent / "cases"
START = 1_704_070_800.0


def entries(*told: tuple[str, float] | tuple[int, float]) -> str:
    lines = []
    for name, at in told:
        step = {"step_count": name, "step_start_time": START + at}
        lines.append(json.dumps({"job_name": "j", **(step if isinstance(name, int) else {name: START + at})}))
    return "\n".join(lines)


def of(text: str) -> Goodput:
    found = Imported("mlgoodput", text)
    (shot,) = folded(found.events).values()
    return goodput(shot.summary, shot.attempts, shot.segments, points_of(found.events))


def story(told: Story) -> Goodput:
    shot = told.at()
    return goodput(shot.summary, shot.attempts, shot.segments, points_of(told.events))


def test_without_a_disruption() -> None:
    found = of(entries(("job_start_time", 0), (0, 5), (1, 13), (2, 16), (3, 19), (4, 22), ("job_end_time", 25)))
    # Steps of 8, 3, 3, 3 s and 3 s up to the end: 20 s, less the surplus of the first, 8 - 3 = 5 s. Of 25 s.
    assert (found.goodput_pct, found.productive_s, found.total_s) == (60.0, 15.0, 25.0)
    assert found.badput_s["program_startup"] == 5.0
    assert sum(found.badput_s.values()) + found.productive_s == pytest.approx(found.total_s)


def test_with_steps_that_are_done_again() -> None:
    first = [("job_start_time", 0.0), *((n, 5.0 + 3 * n) for n in range(5))]
    second = [("job_start_time", 115.0), *((n, 120.0 + 3 * (n - 3)) for n in range(3, 8)), ("job_end_time", 135.0)]
    found = of(entries(*first, *second))  # type: ignore[arg-type]
    # Steps 0 to 2 are kept, 9 s; step 3 is thrown away; then 12 s and 3 s up to the end: 24 of 135 s.
    assert (found.productive_s, found.total_s) == (24.0, 135.0)
    assert found.goodput_pct == pytest.approx(17.7777777)
    assert (found.badput_s["wasted_progress"], found.badput_s["infrastructure_recovery"]) == (3.0, 98.0)
    assert found.disruptions == 1


def test_an_outage_is_no_step() -> None:
    first = [("job_start_time", 0.0), *((n, 5.0 + 3 * n) for n in range(5))]
    second = [("job_start_time", 115.0), *((n, 120.0 + 3 * (n - 5)) for n in range(5, 8)), ("job_end_time", 129.0)]
    found = of(entries(*first, *second))  # type: ignore[arg-type]
    # 12 s of steps before, 6 s after, 3 s up to the end. (Taken for a step, the outage would make it 124 s of 129.)
    assert (found.productive_s, found.total_s) == (21.0, 129.0)


def test_the_worked_example() -> None:
    done = CliRunner().invoke(replay, [str(CASES / "01-worked-example.jsonl"), "--definition", "goodput"])
    found = json.loads(done.stdout)
    # Not counted: 60 s in the queue. Kept of the first attempt: 1200 of 2000 samples, 1200 s. The second from 3035 s
    # on, all of
    # it: stalls, redone samples and half an hour of publishing, up to 6865 s. 1200 + 3830 of 6805 s.
    assert (found["total_s"], found["productive_s"]) == (6805.0, 5030.0)
    assert found["goodput_pct"] == pytest.approx(100 * 5030 / 6805)
    # Thrown away: 800 samples, their save among them.
    assert found["badput_s"]["wasted_progress"] == 800.0


def test_blocking_saves_and_other_phases_in_the_loop() -> None:
    told = (
        Story().submitted(0).started(0).trains(10).progress(20, 10).progress(30, 20).progress(50, 30).progress(60, 40)
    )
    told.phase(30, 35, "wasted_training.checkpoint_save").phase(35, 40, "wasted_training.evaluation")
    told.ended(60, "succeeded").over(60)
    found = story(told)
    # Four gaps of 10, 10, 20 and 10 s; the third has 5 s of saving and 5 s of evaluation.
    assert (found.productive_s, found.total_s) == (40.0, 60.0)
    assert (found.badput_s["checkpoint_save"], found.badput_s["custom_events"]) == (5.0, 5.0)


@pytest.mark.parametrize("path", sorted(CASES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_time_is_conserved(path: Path) -> None:
    done = CliRunner().invoke(replay, [str(path), "--definition", "goodput"])
    for line in done.stdout.splitlines():
        found = json.loads(line)
        assert found["productive_s"] + sum(found["badput_s"].values()) == pytest.approx(found["total_s"], abs=1e-5)
        assert found["goodput_pct"] is None or 0 <= found["goodput_pct"] <= 100
        assert all(seconds >= 0 for name, seconds in found["badput_s"].items() if name != "other")


def test_a_table_and_what_does_not_go_together() -> None:
    words = [str(CASES / "01-worked-example.jsonl"), "--definition", "goodput"]
    table = CliRunner().invoke(replay, [*words, "--format", "table"])
    assert "73.92 %" in table.stdout
    assert CliRunner().invoke(replay, [*words, "--segments"]).exit_code == 2
    assert CliRunner().invoke(replay, [*words, "--lateness", "6h"]).exit_code == 2


def both(told: Story, now: float | None = None) -> tuple[float, float]:
    """Goodput and ETT% of a job, in per cent, to a tenth."""
    shot = told.at(now)
    found = goodput(shot.summary, shot.attempts, shot.segments, points_of(told.events))
    assert found.goodput_pct is not None
    assert shot.summary.ett_pct is not None
    return round(found.goodput_pct, 1), round(shot.summary.ett_pct, 1)


def steps(told: Story, start: float, first: int, count: int, seconds: float, attempt: int = 0) -> Story:
    told.trains(start, first, attempt)
    for n in range(count):
        told.progress(start + (n + 1) * seconds, first + n + 1, attempt)
    return told


def test_the_examples_of_the_page() -> None:
    queue = steps(Story().submitted(0).started(100), 200, 0, 80, 10).ended(1000, "succeeded").over(1000)
    assert both(queue) == (88.9, 80.0)
    redone = steps(Story().submitted(0).started(0), 0, 0, 100, 10).ended(1000, "failed")
    steps(redone.started(1000, 1), 1000, 60, 100, 10, 1).ended(2000, "succeeded", 1).over(2000)
    assert both(redone) == (80.0, 80.0)
    first = Story().submitted(0).started(0).trains(0)
    for n in range(10):
        first.progress(60 + 10 * n, n + 1)
    # 150 s, of which the first step takes 60 instead of 10.
    assert both(first.ended(150, "succeeded").over(150)) == (66.7, 100.0)
    hang = Story().submitted(0).started(0).trains(0, report_every_s=3)
    for at, position in ((3, 1), (6, 2), (609, 3), (612, 4)):
        hang.progress(at, position)
    assert both(hang.ended(612, "succeeded").over(612)) == (100.0, 1.5)
    data = Story().submitted(0).started(0).trains(0)
    for n in range(1, 11):
        data.progress(10 * n, n, data_wait_us=4_000_000 * n)
    assert both(data.ended(100, "succeeded").over(100)) == (100.0, 60.0)
    last = steps(Story().submitted(0).started(0), 0, 0, 100, 10).trained(1000, 100)
    last.phase(1000, 2800, "shutdown.model_publish").ended(2800, "succeeded").over(2800)
    assert both(last) == (100.0, 35.7)
    recompiled = steps(Story().submitted(0).started(0), 0, 0, 10, 10).phase(100, 120, "pt2_compilation.recompile")
    recompiled.progress(130, 11).ended(130, "succeeded").over(130)
    assert both(recompiled) == (100.0, 84.6)
