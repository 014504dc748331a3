"""What the doctor finds."""

import json
import os
import shutil
import socket
import tempfile
from collections import namedtuple
from datetime import UTC, datetime
from importlib.metadata import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from ettwatch_app.commands.doctor import doctor
from ettwatch_app.commands.migrate import migrate
from ettwatch_app.datafolder import DataFolder, Ownership, UpInfo, announce
from ettwatch_app.doctor import Finding, examine, installed, known_variables
from ettwatch_app.doctor.environment import check_clock
from support.clickhouse import front_process


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def found(data: Path, area: str, level: str | None = None) -> list[Finding]:
    return [f for f in examine(data) if f.area == area and level in (None, f.level)]


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_a_fresh_machine_is_well(data: Path) -> None:
    result = CliRunner().invoke(doctor, ["--data", str(data)])
    assert result.exit_code == 0, result.stdout
    assert "does not exist yet; `ettwatch up`" in " ".join(result.stdout.split())
    assert not data.exists()


def test_json_for_scripts(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETTWATCH_LATENESS", "6 hours")
    result = CliRunner().invoke(doctor, ["--data", str(data), "--format", "json"])
    assert result.exit_code == 2
    told = json.loads(result.stdout)
    assert told["ok"] is False
    fail = only([Finding(**f) for f in told["findings"] if f["level"] == "fail"])
    assert fail.area == "environment"
    assert "ETTWATCH_LATENESS" in fail.what


def test_warnings_alone_exit_with_0(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETTWATCH_JOBB", "x")
    result = CliRunner().invoke(doctor, ["--data", str(data)])
    assert result.exit_code == 0
    assert "did you mean ETTWATCH_JOB?" in result.stdout
    assert "0 failures, 1 warning\n" in result.stdout


def test_all_documented_variables_are_known(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"ETTWATCH_DATA", "ETTWATCH_SPOOL", "ETTWATCH_OWNERS", "ETTWATCH_KAFKA", "ETTWATCH_JOB"} <= known_variables()
    monkeypatch.setenv("ettwatch_data", "x")
    assert only(found(data, "environment", "warn")).do == "did you mean ETTWATCH_DATA?"


def test_values_that_the_recorder_would_refuse(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETTWATCH_FSYNC", "maybe")
    assert "ETTWATCH_FSYNC='maybe' is not 1 or 0" in only(found(data, "environment", "warn")).what


def test_a_missing_extra_is_told_with_its_cure(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(installed.EXTRAS, "sinks", (("chdb", "no-such-package-here"), "sql"))
    finding = only(found(data, "installed", "warn"))
    assert "no-such-package-here missing" in finding.what
    assert "pip install 'ettwatch[sinks]'" in finding.do


def test_every_extra_is_known() -> None:
    assert {*installed.EXTRAS, "all", "dev"} == set(metadata("ettwatch").get_all("Provides-Extra") or ())


def test_wrong_owners_are_told_line_by_line(data: Path) -> None:
    data.mkdir()
    (data / "owners.yaml").write_text("owners:\n  shutdwn: {team: a}\n  scheduling: {}\n")
    fails = found(data, "owners", "fail")
    assert [f.what.split(": ")[0] for f in fails] == [f"{data}/owners.yaml:2", f"{data}/owners.yaml:3"]


def test_owners_that_leave_a_component_out(data: Path) -> None:
    data.mkdir()
    (data / "owners.yaml").write_text("owners:\n  shutdown: {team: a}\n")
    assert "nobody owns scheduling, hardware_setup" in only(found(data, "owners", "warn")).what


def test_owners_that_are_not_there(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETTWATCH_OWNERS", "gone.yaml")
    assert "cannot read gone.yaml" in only(found(data, "owners", "fail")).what


def test_a_folder_that_cannot_be_written_to(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "spool").mkdir(parents=True)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    for area in ("data folder", "spool"):
        finding = only(found(data, area, "fail"))
        assert "Permission denied" in finding.what
        assert finding.do


def test_files_where_folders_should_be(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data.write_text("")
    monkeypatch.setenv("ETTWATCH_SPOOL", str(data))
    assert "is no folder" in only(found(data, "data folder", "fail")).what
    assert "is no folder" in only(found(data, "spool", "fail")).what


@pytest.mark.parametrize(("free", "level"), [(50 << 20, "fail"), (500 << 20, "warn")])
def test_little_room(free: int, level: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, free))
    assert f"only {free >> 20}.0 MB are free" in only(found(data, "data folder", level)).what


def test_dead_letters_wait_to_be_read(data: Path) -> None:
    data.mkdir()
    (data / "rejected.jsonl").write_text("{}\n{}\n{}\n")
    finding = only(found(data, "data folder", "warn"))
    assert finding.what == "3 refused lines or events wait to be looked at"
    assert "rejected.jsonl" in finding.do


def test_a_state_file_that_is_none(data: Path) -> None:
    data.mkdir()
    (data / "state.sqlite").write_text("no database" * 100)
    assert "cannot read" in only(found(data, "data folder", "fail")).what


def test_a_spool_that_nobody_reads(data: Path) -> None:
    spool = data / "spool"
    spool.mkdir(parents=True)
    assert "nothing waits" in only(found(data, "spool")).what
    (spool / "a.jsonl").write_bytes(b"x" * (3 << 20))
    (spool / "b.jsonl.gz").write_bytes(b"")
    (spool / ".c.tmp").write_bytes(b"")
    finding = only(found(data, "spool", "warn"))
    assert "2 files with 3.0 MB and nobody reads" in finding.what
    assert "ettwatch up --once" in finding.do


def test_an_up_that_lives_but_does_not_answer(data: Path) -> None:
    folder = DataFolder(data)
    spool = data / "spool"
    spool.mkdir(parents=True)
    (spool / "a.jsonl").write_bytes(b"x")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with Ownership(folder, "ettwatch up"):
        announce(folder, UpInfo(os.getpid(), f"http://127.0.0.1:{port}", "2026-01-01T00:00:00Z", (str(spool),)))
        assert "does not answer" in only(found(data, "up", "fail")).what
        assert "followed by `ettwatch up`" in only(found(data, "spool")).what
        announce(folder, UpInfo(os.getpid(), None, "2026-01-01T00:00:00Z", ()))
        assert "serves no HTTP" in only(found(data, "up", "ok")).what
        assert "nobody reads" in only(found(data, "spool", "warn")).what
    assert "no `ettwatch up` lives here" in only(found(data, "up", "ok")).what


def test_kafka_is_tried_where_it_is_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(data, "kafka") == []
    with socket.create_server(("127.0.0.1", 0)) as broker:
        port = broker.getsockname()[1]
        monkeypatch.setenv("ETTWATCH_KAFKA", f"127.0.0.1:{port}, nonsense:x")
        well, bad, mute = found(data, "kafka")
        assert (well.level, well.what) == ("ok", f"127.0.0.1:{port} takes connections")
        assert (bad.level, bad.what) == ("fail", "ETTWATCH_KAFKA: 'nonsense:x' is no broker")
        assert mute.level == "warn"
        assert mute.what.startswith("the topics cannot be looked at: ")
    monkeypatch.setenv("ETTWATCH_KAFKA", f"127.0.0.1:{port}")
    assert "cannot reach 127.0.0.1" in only(found(data, "kafka", "fail")).what


def test_a_server_is_asked_for_its_tables(
    data: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(data, "clickhouse") == []
    with front_process(tmp_path_factory.mktemp("server")) as url:
        monkeypatch.setenv("ETTWATCH_CLICKHOUSE", f"{url}/ettwatch")
        assert "ettwatch" in only(found(data, "clickhouse", "fail")).what
        assert CliRunner().invoke(migrate, ["--clickhouse", f"{url}/ettwatch"]).exit_code == 0
        assert "with the tables of this version" in only(found(data, "clickhouse", "ok")).what
    monkeypatch.setenv("ETTWATCH_CLICKHOUSE", "http://127.0.0.1:9/ettwatch")
    away = only(found(data, "clickhouse", "fail"))
    assert "127.0.0.1:9" in away.what
    assert away.do
    monkeypatch.setenv("ETTWATCH_CLICKHOUSE", "nonsense")
    assert only(found(data, "clickhouse", "fail")).do == "correct it, or unset it"


def test_a_clock_that_was_never_set() -> None:
    assert only(list(check_clock(datetime(1970, 1, 1, 0, 5, tzinfo=UTC)))).level == "fail"
    assert only(list(check_clock(datetime(2026, 9, 21, tzinfo=UTC)))).level == "ok"
