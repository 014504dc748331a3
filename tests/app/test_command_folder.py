"""How the commands that read a data folder meet one that they cannot use."""

import errno
import os
import socket
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ettwatch_app.commands import _folder
from ettwatch_app.commands._folder import opened
from ettwatch_app.commands._shared import Refused
from ettwatch_app.commands.rebuild import rebuild
from ettwatch_app.commands.report import report
from ettwatch_app.commands.sql import sql
from ettwatch_app.datafolder import DataFolder, FolderError, Ownership, UpInfo, announce
from ettwatch_app.render import write_advice


@pytest.mark.parametrize(("command", "args"), [(report, []), (sql, ["SELECT 1"]), (rebuild, [])])
@pytest.mark.parametrize("held", [[], ["notes.txt"], ["clickhouse"], ["up.lock"]])
def test_a_folder_that_is_no_data_folder_stays_as_it_is(
    tmp_path: Path, command: click.Command, args: list[str], held: list[str]
) -> None:
    for name in held:
        (tmp_path / name).touch()
    result = CliRunner().invoke(command, [*args, "--data", str(tmp_path)])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "is no data folder" in line
    assert [path.name for path in tmp_path.iterdir()] == held


def test_an_up_that_is_stopped_is_not_waited_for(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    # A kernel takes connections for a process that is stopped; nobody answers them.
    with socket.create_server(("127.0.0.1", 0)) as stopped, Ownership(folder, "ettwatch up"):
        url = f"http://127.0.0.1:{stopped.getsockname()[1]}"
        announce(folder, UpInfo(os.getpid(), url, "2026-01-01T00:00:00Z", ()))
        with (
            pytest.raises(Refused, match=rf"process {os.getpid()}\) does not answer"),
            opened(folder, "test", patience_s=0.2),
        ):
            pass


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EROFS, "read-only"),
        (errno.EISDIR, "a folder stands where a file should be"),
        (errno.EACCES, "the right to write"),
        (errno.EIO, "look at that disk"),
    ],
)
def test_advice_fits_the_error(own_filled: DataFolder, monkeypatch: pytest.MonkeyPatch, code: int, words: str) -> None:
    error = OSError(code, os.strerror(code))

    def refuse(*_: object, **__: object) -> None:
        raise FolderError("cannot open") from error

    assert words in write_advice(error)
    monkeypatch.setattr(_folder, "open_store", refuse)
    result = CliRunner().invoke(sql, ["SELECT 1", "--data", str(own_filled.root)])
    assert result.exit_code == 2
    assert os.strerror(code) in result.stderr
    assert words in result.stderr


def test_a_lock_that_is_a_folder(own_filled: DataFolder) -> None:
    own_filled.lock.unlink()
    own_filled.lock.mkdir()
    result = CliRunner().invoke(sql, ["SELECT 1", "--data", str(own_filled.root)])
    assert result.exit_code == 2
    assert "a folder stands where a file should be" in result.stderr


def test_an_up_that_went_away_is_no_matter_of_rights(own_filled: DataFolder) -> None:
    with Ownership(own_filled, "ettwatch up"):
        announce(own_filled, UpInfo(os.getpid(), "http://127.0.0.1:9", "2026-01-01T00:00:00Z", ()))
        result = CliRunner().invoke(sql, ["SELECT 1", "--data", str(own_filled.root)])
    assert result.exit_code == 2
    assert "cannot open the ClickHouse" in result.stderr
