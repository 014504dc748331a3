"""`ettwatch rebuild` on a data folder."""

import json
from pathlib import Path

from click.testing import CliRunner

from ettwatch_app.commands.rebuild import rebuild
from ettwatch_app.commands.report import report
from ettwatch_app.datafolder import DataFolder, open_store


def told(folder: DataFolder, job: str) -> dict[str, object]:
    result = CliRunner().invoke(report, [job, "--data", str(folder.root), "--format", "json"])
    assert result.exit_code == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_derived_tables_come_back(own_filled: DataFolder) -> None:
    before = told(own_filled, "worked-example")
    with open_store(own_filled) as store:
        for table in ("jobs_log", "attempts_log", "segments_log", "phases_log"):
            store.command(f"TRUNCATE TABLE {table}")
    result = CliRunner().invoke(rebuild, ["--data", str(own_filled.root)])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "3 jobs made anew from 101 events\n"
    assert told(own_filled, "worked-example") == before


def test_an_event_that_cannot_be_read_is_counted(own_filled: DataFolder) -> None:
    with open_store(own_filled) as store:
        store.command(
            "INSERT INTO events_log (job, ts, id, kind, v, rank, source, raw, received) "
            "VALUES ('x', '2026-09-21 14:13:20', 'x', 'heartbeat', 1, 0, 'trainer', 'no event', now())"
        )
    result = CliRunner().invoke(rebuild, ["--data", str(own_filled.root)])
    assert result.exit_code == 1
    assert result.stderr == "1 event could not be used\n"


def test_no_events_is_nothing_done(tmp_path: Path) -> None:
    with open_store(DataFolder(tmp_path), create_missing=True):
        pass
    result = CliRunner().invoke(rebuild, ["--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "there are no events in" in result.stderr


def test_no_data_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(rebuild, ["--data", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "there is no data folder" in result.stderr
