"""What breaks a library under a reader, or the wire under an event, costs the line that it stands in and no more."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ettwatch_app.commands.import_ import import_
from ettwatch_schemas import decode_event
from support.imported import Imported

CSV = "job_id,user,node_num,gpu_num,state,submit_time,start_time,end_time\n"
ROW = "{},u,1,8,COMPLETED,2023-03-01 00:18:22+08:00,2023-03-01 00:19:22+08:00,2023-03-01 01:19:22+08:00\n"
MAPPING = {
    "version": 1,
    "time": {"field": "t", "unit": "s"},
    "events": [
        {"kind": "phase", "when": {"e": "span"}, "start": {"field": "t", "unit": "s"},
         "duration": {"field": "d", "unit": "s"}, "set": {"phase": "trainer_init", "attrs": {"field": "a"}}},
        {"kind": "job_submitted", "when": {"e": "sub"}, "set": {"labels": {"field": "a"}}},
        {"kind": "progress", "set": {"position": {"field": "n", "times": 2}}},
    ],
}  # fmt: skip


def test_a_row_that_the_csv_reader_refuses_costs_that_row() -> None:
    found = Imported("acme", CSV + ROW.format(1) + "x" * 200_000 + "\n" + ROW.format(2))
    assert len(found.jobs) == 2
    assert found.report.refused == 1


@pytest.mark.parametrize("rows", [3, 3000])
def test_a_quote_that_is_never_closed_costs_the_row_that_opens_it(rows: int) -> None:
    before, after = ROW.format(1), "".join(ROW.format(2 + n) for n in range(rows))
    found = Imported("acme", CSV + before + '9,"u,1,8,COMPLETED\n' + after)
    assert len(found.report.jobs) == rows + 1
    assert found.report.refused == 1
    assert [refusal.line for refusal in found.report.doubts.refused] == [3]


def test_a_cell_may_hold_line_breaks() -> None:
    found = Imported("acme", CSV + ROW.format(1).replace("u,", '"u\nv",') + ROW.format(2))
    assert len(found.report.jobs) == 2
    assert not found.report.refused


@pytest.mark.parametrize(
    "row",
    [
        {"e": "step", "t": 1762164000, "n": 10**400},
        {"e": "step", "t": 10**400, "n": 1},
        {"e": "step", "t": float("nan"), "n": 1},
        {"e": "step", "t": 1762164000, "n": float("inf")},
        {"e": "span", "t": 1762164000, "d": 10**400},
        {"e": "span", "t": 1762164000, "d": float("-inf")},
        {"e": "span", "t": 1762164000, "d": 1, "a": {"x": "\ud800"}},
        {"e": "span", "t": 1762164000, "d": 1, "a": {"\udfff": 1}},
        {"e": "span", "t": 1762164000, "d": 1, "a": {"x": float("nan")}},
        {"e": "span", "t": 1762164000, "d": 1, "a": {"x": "y" * 1_100_000}},
        {"e": "span", "t": 1762164000, "d": 1, "a": {"x": 10**400}},
        {"e": "sub", "t": 1762164000, "a": {"x": "\ud800"}},
        {"e": "sub", "t": 1762164000, "a": {str(n): "y" * 60_000 for n in range(40)}},
    ],
    ids=range(13),
)
def test_what_no_event_can_hold_is_refused_or_left_out(row: dict[str, object]) -> None:
    good = {"e": "step", "t": 1762164001, "n": 1}
    found = Imported("mapped", json.dumps(row) + "\n" + json.dumps(good) + "\n", mapping=MAPPING)
    assert [event["position"] for event in found.of("progress")] == [2]
    assert found.report.refused <= 2


def test_a_row_without_any_time_is_refused_and_an_end_before_its_start_not_taken() -> None:
    """No time is invented, and none is let go silently."""
    at = 1_762_164_000
    slurm = Imported(
        "slurm",
        f"JobID|State|Submit|Eligible|Start|End\n7|COMPLETED|0|0|0|0\n8|COMPLETED|{at}|{at}|{at + 100}|{at + 50}\n",
    )
    times = [f"2023-03-01 0{hour}:00:00+08:00" for hour in (1, 3, 2)]
    acme = Imported("acme", f"{CSV}7,u,1,8,COMPLETED,,,\n8,u,1,-8,COMPLETED,{','.join(times)}\n")
    turned = {"start_time": "2017-10-07 03:00:00", "end_time": "2017-10-07 02:00:00", "detail": []}
    jobs = [{"jobid": "7", "status": "Pass"}, {"jobid": "8", "status": "Pass", "attempts": [turned]}]
    philly = Imported("philly", json.dumps(jobs))
    for found in (slurm, acme, philly):
        assert found.report.refused == 2
        assert [refusal.reason.startswith("job 7 has no time") for refusal in found.report.doubts.refused].count(
            True
        ) == 1
        assert (found.job.job, found.job.attempts, found.job.status) == ("8", 1, "starting")
        assert "no_end" in found.flags
    # Fewer than no GPUs are none that are told: the rest of the row counts.
    assert acme.of("attempt_started")[0].get("gpus") is None


def test_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    log = ':::MLLOG {"key": "run_start", "time_ms": 1762164000000, "metadata": {}}\n'
    for name in (b"a-\xff.log", b"a-\xfe.log"):
        with open(bytes(tmp_path) + b"/" + name, "w", encoding="utf-8") as file:
            file.write(log)
    done = CliRunner().invoke(import_, ["mllog", str(tmp_path), "--out", "-"])
    assert done.exit_code == 0, done.stderr
    jobs = {decode_event(line.encode()).job for line in done.stdout.splitlines()}
    assert len(jobs) == 2


def test_names_of_jobs_that_differ_behind_the_longest_stay_two() -> None:
    first, second = (Imported("mllog", _start(), job="x" * 1024 + end) for end in "ab")
    assert set(first.jobs).isdisjoint(second.jobs)


def _start() -> str:
    return ':::MLLOG {"key": "run_start", "time_ms": 1762164000000, "metadata": {}}\n'
