"""`ettwatch sql` and `report` ask a ClickHouse server as they ask a data folder."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ettwatch_app.commands.migrate import migrate
from ettwatch_app.commands.report import report
from ettwatch_app.commands.sql import sql
from support.clickhouse import front_process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with front_process(tmp_path_factory.mktemp("server")) as url:
        address = f"{url}/ettwatch"
        done = CliRunner().invoke(migrate, ["--clickhouse", address])
        assert done.exit_code == 0, done.output
        yield address


def test_sql(server: str) -> None:
    done = CliRunner().invoke(sql, ["SELECT count() AS n FROM jobs", "--clickhouse", server, "--format", "json"])
    assert (done.exit_code, json.loads(done.output)) == (0, {"n": 0})


def test_nothing_can_be_changed(server: str) -> None:
    for query in ("DROP TABLE jobs_log", "SELECT * FROM url('http://127.0.0.1:1/', CSV, 'a String')"):
        done = CliRunner().invoke(sql, [query, "--clickhouse", server])
        assert done.exit_code == 2
        assert "Error: " in done.output


def test_report(server: str) -> None:
    done = CliRunner().invoke(report, ["--clickhouse", server, "--format", "json"])
    assert (done.exit_code, json.loads(done.output)["jobs"]) == (0, 0)
    done = CliRunner().invoke(report, ["nobody", "--clickhouse", server])
    assert done.exit_code == 2
    assert "there is no job 'nobody' in that ClickHouse" in done.output


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/ettwatch", "no-address"])
def test_a_server_that_is_not_there(url: str, tmp_path: Path) -> None:
    for command, words in ((sql, ["SELECT 1"]), (report, [])):
        done = CliRunner().invoke(command, [*words, "--clickhouse", url])
        assert done.exit_code == 2
        assert len(done.output.strip().splitlines()) == 1
