"""What is read from a data folder is what is read from the files: goodput, and exports."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app.conftest import CASES
from ettwatch_app.commands.export import export
from ettwatch_app.commands.replay import replay
from ettwatch_app.commands.report import report
from ettwatch_app.datafolder import DataFolder

EXAMPLE, JOB = str(CASES / "01-worked-example.jsonl"), "worked-example"


def done(command: Any, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(command, list(words))
    assert result.exit_code == code, result.output
    return result


def test_report_tells_goodput_as_replay_does(at_filled: DataFolder) -> None:
    wanted = json.loads(done(replay, EXAMPLE, "--definition", "goodput").stdout)
    assert wanted["definition"] == "goodput"
    assert json.loads(done(report, JOB, "--definition", "goodput", "--format", "json").stdout) == wanted
    assert f"{wanted['goodput_pct']:.1f}" in done(report, JOB, "--definition", "goodput").stdout


def test_goodput_is_of_one_job(at_filled: DataFolder) -> None:
    assert "JOB" in done(report, "--definition", "goodput", code=2).stderr


@pytest.mark.parametrize("kind", ["otlp", "cloudevents"])
def test_a_job_of_the_folder_is_exported_as_one_of_a_file(at_filled: DataFolder, kind: str) -> None:
    from_file = [json.loads(line) for line in done(export, kind, EXAMPLE).stdout.splitlines()]
    from_folder = [json.loads(line) for line in done(export, kind, "--job", JOB).stdout.splitlines()]
    assert from_folder == from_file
    assert from_file


def test_every_job_of_the_folder_is_exported(at_filled: DataFolder) -> None:
    names = sorted(path.stem for path in CASES.glob("*.jsonl"))
    result = done(export, "cloudevents")
    assert len(result.stdout.splitlines()) == len(names)
    assert f"{len(names)} CloudEvents" in result.stderr


def test_a_job_that_is_not_there(at_filled: DataFolder) -> None:
    assert done(export, "otlp", "--job", "nobody", code=2).stdout == ""
