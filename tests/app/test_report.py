"""`ettwatch report` on a data folder."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ettwatch_app.commands.replay import replay
from ettwatch_app.commands.report import report
from ettwatch_app.datafolder import DataFolder, Ownership, UpInfo, announce, locate, open_store
from ettwatch_schemas import COMPONENTS, EFFECTIVE

CASES = Path(__file__).parent.parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.jsonl"))


def run(*args: str) -> Result:
    return CliRunner().invoke(report, list(args))


def replayed() -> dict[str, dict[str, object]]:
    result = CliRunner().invoke(replay, [str(CASES / f"{name}.jsonl") for name in NAMES] + ["--segments"])
    return {job["job"]: job for job in map(json.loads, result.stdout.splitlines())}


def test_a_job(at_filled: DataFolder) -> None:
    result = run("worked-example")
    assert result.exit_code == 0, result.stderr
    assert "ETT 45.4 %  51m 58s of 1h 54m trained on new data" in result.stdout
    assert "team publishing" in result.stdout
    assert "#1 " in result.stdout
    assert "failed: hardware" in result.stdout


def test_sql_says_what_replay_says(at_filled: DataFolder) -> None:
    wanted = replayed()
    assert len(wanted) == len(NAMES)
    for job, summary in wanted.items():
        result = run(job, "--format", "json")
        assert result.exit_code == 0, result.stderr
        told = json.loads(result.stdout)
        assert told["segments"] == summary.pop("segments")
        assert told["summary"] == summary
        assert len(told["attempts"]) == summary["attempts"]
        assert set(told["owners"]) == set(told["summary"]["stages"])


def test_all_jobs(at_filled: DataFolder) -> None:
    result = run()
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("ETT ")
    assert f"{len(NAMES)} jobs, 8 failures" in lines[0]
    assert [line for line in lines if line.startswith("worked-example ")]


def test_all_jobs_as_json_are_weighted_by_gpus(at_filled: DataFolder) -> None:
    told = json.loads(run("--format", "json", "--limit", "3").stdout)
    jobs = replayed().values()
    gpu_e2e_s = sum(float(str(job["gpu_e2e_s"])) for job in jobs)
    gpu_effective_s = sum(float(str(job["gpu_effective_s"])) for job in jobs)
    assert told["jobs"] == len(NAMES)
    assert len(told["listed"]) == 3
    assert told["gpu_e2e_s"] == pytest.approx(gpu_e2e_s)
    assert told["ett_pct"] == pytest.approx(100 * gpu_effective_s / gpu_e2e_s)
    assert sum(told["gpu_stages_s"].values()) == pytest.approx(gpu_e2e_s, abs=1e-5)
    assert told["gpu_stages_s"][EFFECTIVE] == pytest.approx(gpu_effective_s, abs=1e-5)
    assert {stage.partition(".")[0] for stage in told["gpu_stages_s"]} == {EFFECTIVE, *COMPONENTS}


@pytest.mark.parametrize(
    ("order", "key", "words"),
    [
        ("newest", lambda job: -job["t1"], "newest of"),
        ("lost", lambda job: job["gpu_effective_s"] - job["gpu_e2e_s"], "that lost most"),
        ("ett", lambda job: math.inf if job["ett_pct"] is None else job["ett_pct"], "with the lowest ETT"),
        ("tts", lambda job: math.inf if job["tts_s"] is None else -job["tts_s"], "that started slowest"),
        ("nof", lambda job: -job["nof"], "that failed most often"),
    ],
)
def test_sort_says_which_come_first(
    at_filled: DataFolder, order: str, key: Callable[[dict[str, Any]], float], words: str
) -> None:
    done = CliRunner().invoke(report, ["--sort", order, "--format", "json", "--limit", "0"])
    listed = json.loads(done.output)["listed"]
    assert len({key(job) for job in listed}) > 1
    assert listed == sorted(listed, key=lambda job: (key(job), job["job"]))
    assert words in CliRunner().invoke(report, ["--sort", order, "--limit", "2"]).output


def test_limit_cuts_the_list_and_says_so(at_filled: DataFolder) -> None:
    assert f"the 2 newest of {len(NAMES)} jobs; --limit shows more" in run("--limit", "2").stdout
    assert "--limit shows more" not in run("--limit", "0").stdout


@pytest.mark.parametrize(
    ("job", "hint"),
    [
        ("workd", "did you mean 'worked-example'?"),
        ("HANG", "did you mean 'hang-then-timeout'?"),
        ("zzzzzz", "`ettwatch report` without a name lists the jobs"),
        ("x\x1b[2J' OR 1=1 --", "without a name lists"),
    ],
)
def test_an_unknown_job_is_met_with_near_names(at_filled: DataFolder, job: str, hint: str) -> None:
    result = run(job)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert "\x1b" not in result.stderr
    assert result.stdout == ""


def test_owners_of_the_data_folder(at_filled: DataFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "owners.yaml"
    own.write_text("owners: {shutdown: {team: the-night-watch}}")
    monkeypatch.setenv("ETTWATCH_OWNERS", str(own))
    assert "30m 00s, team the-night-watch" in run("worked-example").stdout
    own.write_text("owners: {shutdwn: {team: x}}")
    result = run("worked-example")
    assert result.exit_code == 2
    assert f"{own}:1: 'shutdwn' is under no component (did you mean 'shutdown'?)" in result.stderr


def test_no_data_folder(tmp_path: Path) -> None:
    result = run("--data", str(tmp_path / "none"))
    assert result.exit_code == 2
    assert "there is no data folder at" in result.stderr
    assert not (tmp_path / "none").exists()


def test_a_data_folder_in_use(filled: DataFolder, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    with Ownership(folder, "ettwatch up"):
        announce(folder, UpInfo(1, None, "2026-01-01T00:00:00Z", ()))
        result = run("--data", str(tmp_path))
    assert result.exit_code == 2
    assert "is in use by `ettwatch up`" in result.stderr


def test_an_empty_data_folder(tmp_path: Path) -> None:
    with open_store(locate(tmp_path), create_missing=True):
        pass
    result = run("--data", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("ETT -  weighted by GPUs, - unweighted; 0 jobs, 0 failures\n")
    assert json.loads(run("--data", str(tmp_path), "--format", "json").stdout)["listed"] == []
