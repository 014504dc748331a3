"""`ettwatch owners`: what it says, and the exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ettwatch_app import datafolder
from ettwatch_app.commands.owners import owners
from ettwatch_app.datafolder import DataFolder
from ettwatch_app.owners import find_owners
from ettwatch_app.up import UpSettings, run_up
from ettwatch_schemas import COMPONENTS

TEXT = """\
owners:
  trainer_init: {system: start-up, team: trainer, contact: "#trainer"}
  trainer_init.checkpoint_load: {team: storage, overrides: [{cluster: eu, team: storage-eu}]}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(TEXT)
    monkeypatch.setenv("ETTWATCH_OWNERS", str(path))
    monkeypatch.setenv("ETTWATCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "140")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(owners, [*arguments])


def test_a_file_that_is_right_and_one_with_doubts(file: Path) -> None:
    file.write_text("owners: {" + ", ".join(f"{c}: {{team: a}}" for c in COMPONENTS) + "}")
    done = run("check", "--strict")
    assert (done.exit_code, done.output) == (0, f"{file}: 6 rules, can be used; 0 problems, 0 doubts\n")
    file.write_text(TEXT)
    done = run("check", str(file))
    assert done.exit_code == 0
    assert f"{file}:1: doubt: nobody owns scheduling, hardware_setup, " in done.output
    assert done.output.endswith("3 rules, can be used; 0 problems, 1 doubt\n")
    assert run("check", "--strict").exit_code == 1


def test_a_file_that_is_wrong_is_told_line_by_line(file: Path) -> None:
    file.write_text("owners:\n  shutdwn: {team: a}\n  scheduling: {}\n")
    done = run("check")
    assert done.exit_code == 2
    assert f"{file}:2: wrong: 'shutdwn' is under no component (did you mean 'shutdown'?)" in done.output
    assert f"{file}:3: wrong: 'scheduling' names no team; add team: NAME" in done.output
    assert done.output.endswith("cannot be used; 2 problems, 0 doubts\n")
    told = json.loads(run("check", "--format", "json").output)
    assert (told["ok"], told["source"], [p["line"] for p in told["problems"]]) == (False, str(file), [2, 3])


def test_a_file_that_is_not_there(file: Path) -> None:
    file.unlink()
    for arguments in (("check",), ("check", "/nowhere/x.yaml"), ("show",), ("push", "/nowhere/x.yaml")):
        done = run(*arguments)
        assert done.exit_code == 2
        assert "cannot read" in done.output
        assert "No such file" in done.output


def test_all_rules_and_those_of_a_team(file: Path) -> None:
    done = run("show")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.output.splitlines()[1:4]] == [
        "trainer_init",
        "trainer_init.checkpoint_load",
        "trainer_init.checkpoint_load",
    ]
    told = json.loads(run("show", "--team", "storage-eu", "--format", "json").output)
    assert told == {
        "stage": "trainer_init.checkpoint_load",
        "cluster": "eu",
        "model": None,
        "system": None,
        "team": "storage-eu",
        "contact": None,
        "line": 3,
    }


def test_columns_that_say_nothing_are_left_out_and_no_stage_is_broken(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("ETTWATCH_OWNERS")
    lines = run("show").output.splitlines()
    assert lines[0].split() == ["stage", "system", "team", "line"]
    assert lines[-1] == "from the built-in owners"
    assert [line.split()[0] for line in lines[1:-1]] == [rule.stage for rule in find_owners(file.parent / "none").rules]
    monkeypatch.setenv("ETTWATCH_OWNERS", str(file))
    assert run("show").output.split()[:6] == ["stage", "cluster", "system", "team", "contact", "line"]


def test_the_owner_of_a_stage(file: Path) -> None:
    for arguments, team in [
        (("trainer_init.checkpoint_load.read",), "storage"),
        (("trainer_init.checkpoint_load", "--cluster", "eu"), "storage-eu"),
        (("trainer_init.checkpoint_load", "--cluster", "us", "--model", "m"), "storage"),
        (("trainer_init",), "trainer"),
    ]:
        told = json.loads(run("show", *arguments, "--format", "json").output)
        assert told["team"] == team
    done = run("show", "shutdown")
    assert done.exit_code == 1
    assert done.output == f"nobody; {file} has no rule for it\n"


def test_questions_that_make_no_sense(file: Path) -> None:
    done = run("show", "shutdwn")
    assert done.exit_code == 2
    assert "'shutdwn' is no stage" in done.output
    done = run("show", "--cluster", "eu")
    assert done.exit_code == 2
    assert "need a STAGE" in done.output


def test_push_into_the_data_folder_and_up_by_itself(file: Path, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    done = run("push")
    assert done.exit_code == 2
    assert "there is no data folder" in done.output

    # With --once it reads the file, too.
    assert run_up(UpSettings(folder.root, (folder.spool,), None, once=True)) == 0
    assert rows(folder) == [("",), ("",), ("eu",)]
    done = run("push")
    assert (done.exit_code, done.output) == (0, f"3 rules of {file}: were in ClickHouse already\n")
    other = tmp_path / "other.yaml"
    other.write_text("owners: {shutdown: {team: a}}")
    done = run("push", str(other))
    assert (done.exit_code, done.output) == (0, f"1 rule of {other}: now in ClickHouse\n")
    assert rows(folder) == [("",)]

    other.write_text("owners: {shutdwn: {team: a}}")
    done = run("push", str(other))
    assert done.exit_code == 2
    assert "the ownership file is wrong" in done.output
    assert rows(folder) == [("",)]


def test_push_to_a_server_that_is_not_there(file: Path) -> None:
    done = run("push", "--clickhouse", "http://127.0.0.1:1/ettwatch")
    assert done.exit_code == 2
    assert "127.0.0.1:1" in done.output
    assert run("push", "--clickhouse", "nonsense").exit_code == 2


def rows(folder: DataFolder) -> list[tuple[object, ...]]:
    with datafolder.open_store(folder) as store:
        return store.query("SELECT cluster FROM owners ORDER BY cluster").rows
