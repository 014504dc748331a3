"""The reports as text, held against what they looked like when someone last looked.

`UPDATE_GOLDEN=1 pytest tests/app/test_render_report.py` writes golden/ anew; look at the difference.
"""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from ettwatch_app.owners import find_owners
from ettwatch_app.render import FleetView, JobView, Mark, print_fleet, print_job
from ettwatch_app.render.flags import WORDS
from ettwatch_core.ownership import Owners, parse_owners
from ettwatch_schemas import EFFECTIVE
from support.views import T0, S, attempt, segments, span, summary

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def owners(tmp_path: Path) -> Owners:
    return find_owners(tmp_path / "none.yaml")


def console(width: int = 100, **options: object) -> Console:
    return Console(file=io.StringIO(), width=width, markup=False, highlight=False, emoji=False, **options)  # type: ignore[arg-type]


def text_of(view: JobView | FleetView, out: Console) -> str:
    if isinstance(view, JobView):
        print_job(view, out)
    else:
        print_fleet(view, out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def check(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def worked(owners: Owners, **changes: object) -> JobView:
    return JobView(
        summary=summary(**changes),
        attempts=[attempt(0), attempt(1)],
        segments=segments(),
        owners=owners,
        spans=[span(), span(behind=10), span(attempt=1, behind=3 * S, last_rank=1)],
        marks=[Mark(0, T0 + 1760 * S, "checkpoint"), Mark(1, T0 + 4000 * S, "checkpoint")],
    )


def waiting(owners: Owners) -> JobView:
    """A job that was submitted and got nothing yet."""
    return JobView(
        summary=summary(
            job="queued",
            team=None,
            model=None,
            cluster=None,
            status="pending",
            attempts=0,
            gpus=1,
            t1=T0 + 90 * S,
            e2e_s=90.0,
            effective_s=0.0,
            ett_pct=0.0,
            tts_s=None,
            ttr_s=[],
            recovery_s=0.0,
            nof=0,
            nof_infra=0,
            components=dict.fromkeys(summary().components, 0.0) | {"scheduling": 90.0},
            stages={"scheduling": 90.0},
            hidden_s={},
            gpu_effective_s=0.0,
            gpu_e2e_s=90.0,
            unsaved_s=0.0,
        ),
        attempts=[],
        segments=[segments()[0]._replace(job="queued", end=T0 + 90 * S)],
        owners=owners,
    )


def fleet(owners: Owners, **changes: object) -> FleetView:
    values: dict[str, object] = {
        "jobs": [summary(), summary(job="other", status="failed", nof=3, nof_infra=2), waiting(owners).summary],
        "owners": owners,
        "number": 5,
        "ett_pct": 45.42,
        "mean_ett_pct": 30.28,
        "nof": 4,
        "gpu_e2e_s": 109_930.0,
        "gpu_stage_s": {
            EFFECTIVE: 49_893.333328,
            "scheduling": 5_850.0,
            "hardware_setup": 1_680.0,
            "trainer_init": 1_120.0,
            "trainer_init.get_first_batch_data": 3_840.0,
            "trainer_init.process_group_init": 960.0,
            "pt2_compilation": 2_400.0,
            "wasted_training.rework": 14_906.67,
            "shutdown.model_publish": 28_800.0,
            "shutdown": 480.0,
        },
    }
    return FleetView(**(values | changes))  # type: ignore[arg-type]


def test_a_job_at_width_100(owners: Owners) -> None:
    check("job-100.txt", text_of(worked(owners, flags=["inferred_end", "zombie", "brand_new"]), console()))


def test_a_job_in_a_narrow_terminal_loses_no_number(owners: Owners) -> None:
    text = text_of(worked(owners), console(60))
    check("job-60.txt", text)
    for number in ("51m 58s", "15m 32s", "26.7 %", "100.0 %", "1h 54m", ".get_first_batch_data"):
        assert number in text


def test_a_job_that_waits(owners: Owners) -> None:
    check("job-waiting.txt", text_of(waiting(owners), console()))


def test_a_fleet_at_width_100(owners: Owners) -> None:
    check("fleet-100.txt", text_of(fleet(owners), console()))


def test_a_fleet_at_width_140_has_more_columns(owners: Owners) -> None:
    check("fleet-140.txt", text_of(fleet(owners), console(140)))


def test_a_fleet_of_one_short_job_is_told_in_seconds(owners: Owners) -> None:
    """What everybody's first job looks like: hours would be 0.00 in every row."""
    scale = 47.7 / 109_930
    small = {stage: seconds * scale for stage, seconds in fleet(owners).gpu_stage_s.items()}
    job = summary(e2e_s=23.85, effective_s=10.8, gpus=2, gpu_e2e_s=47.7, gpu_effective_s=21.6, tts_s=3.2)
    view = fleet(owners, jobs=[job], number=1, nof=1, gpu_e2e_s=47.7, gpu_stage_s=small)
    text = text_of(view, console())
    check("fleet-small.txt", text)
    assert "26.1 of 47.7 GPU-seconds were lost" in text
    assert "lost to                    GPU-seconds" in text


def test_an_empty_fleet(owners: Owners) -> None:
    view = fleet(owners, jobs=[], number=0, ett_pct=None, mean_ett_pct=None, nof=0, gpu_e2e_s=0.0, gpu_stage_s={})
    text = text_of(view, console())
    assert text.startswith("ETT -  weighted by GPUs, - unweighted; 0 jobs, 0 failures\n")


def test_colours_add_nothing_but_colours(owners: Owners) -> None:
    out = console(color_system="truecolor", force_terminal=True)
    text = text_of(worked(owners), out)
    assert "\x1b[30;42m" in text
    assert "\x1b[37;41m" in text


@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_without_colours_every_cell_has_its_letter(
    variable: str, owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, {"NO_COLOR": "1", "TERM": "dumb"}[variable])
    out = console(force_terminal=True)
    text = text_of(worked(owners), out)
    assert "=================" in text
    assert "DDDDDDDDDDDDDDDDDD" in text


def test_only_ascii_where_names_are(owners: Owners) -> None:
    text_of(worked(owners), console()).encode("ascii")
    text_of(fleet(owners), console()).encode("ascii")


def test_evil_names_steer_nothing() -> None:
    evil = "[bold red]x[/]\x1b[2J\x07\r\n\u202e" + "y" * 5_000
    owners = parse_owners(f'owners: {{scheduling: {{team: "[blink]{"t" * 300}", system: "a"}}}}', "x")
    view = JobView(
        summary=summary(job=evil, team=evil, model=evil, cluster=evil, flags=[evil]),
        attempts=[attempt(0, message=evil, flags=["inferred_end"])],
        segments=segments(),
        owners=owners,
        spans=[span()],
    )
    for shown in (text_of(view, console()), text_of(fleet(owners, jobs=[view.summary]), console())):
        assert "red]x[/]\\u001b[2J" in shown
        assert not any(char in shown for char in "\x1b\x07\r\u202e")
        assert max(map(len, shown.splitlines())) <= 100
        assert len(shown) < 10_000


def test_many_attempts_are_cut_in_the_middle(owners: Owners) -> None:
    parts = [segments()[0]._replace(attempt=number) for number in range(60)]
    view = JobView(
        summary=summary(attempts=60),
        attempts=[attempt(0, attempt=number) for number in range(60)],
        segments=parts,
        owners=owners,
    )
    text = text_of(view, console())
    assert "... 36 attempts are not drawn ..." in text
    assert "and 40 more attempts" in text
    assert " #0 " in text
    assert "#59 " in text
    assert "#30 " not in text


def test_an_open_attempt_runs(owners: Owners) -> None:
    view = JobView(
        summary=summary(status="training"),
        attempts=[attempt(0, open=True, outcome=None, cause=None, signal=None)],
        segments=segments(),
        owners=owners,
    )
    text = text_of(view, console())
    assert "worked-example  training\n" in text
    assert "runs\n" in text


def test_several_recoveries_are_told_by_median_and_longest(owners: Owners) -> None:
    words = text_of(worked(owners, ttr_s=[60.0, 120.0, 600.0]), console(140)).split()
    at = words.index("TTR")
    assert " ".join(words[at:]).startswith(
        "TTR 2m 00s time to recover: from a failure to the next first batch; median of 3, longest 10m 00s"
    )


def test_every_flag_of_the_rules_has_words() -> None:
    import re

    import ettwatch_core

    folder = Path(str(ettwatch_core.__file__)).parent
    code = "\n".join(path.read_text() for path in folder.glob("*.py"))
    named = set(re.findall(r'flags\.add\("(\w+)"\)', code)) | set(re.findall(r'flags \|= \{"(\w+)"\}', code))
    assert len(named) >= 5
    assert named <= set(WORDS)
