"""`ettwatch sql` on a data folder."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ettwatch_app.commands.sql import sql
from ettwatch_app.datafolder import DataFolder


def run(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(sql, list(args), input=stdin)


QUERY = "SELECT job, ett_pct, ttr_s, t0, team FROM jobs WHERE job IN ('worked-example', 'still-running') ORDER BY job"


def test_a_table(at_filled: DataFolder) -> None:
    result = run(QUERY)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        "job             ett_pct  ttr_s    t0                    team\n"
        "still-running       0.0  []       2026-09-21T14:13:20Z  ads\n"
        "worked-example   45.424  [495.0]  2026-09-21T14:13:20Z  ads\n"
        "2 rows\n"
    )


def test_json(at_filled: DataFolder) -> None:
    rows = [json.loads(line) for line in run(QUERY, "--format", "json").stdout.splitlines()]
    assert rows[1] == {
        "job": "worked-example",
        "ett_pct": 45.42364651128915,
        "ttr_s": [495.0],
        "t0": "2026-09-21T14:13:20Z",
        "team": "ads",
    }


def test_csv(at_filled: DataFolder) -> None:
    rows = list(csv.DictReader(io.StringIO(run(QUERY, "--format", "csv").stdout)))
    assert [row["job"] for row in rows] == ["still-running", "worked-example"]
    assert rows[1]["ttr_s"] == "[495.0]"


def test_standard_input(at_filled: DataFolder) -> None:
    assert run("-", "--format", "csv", stdin="-- how many?\nSELECT count() AS n FROM jobs;\n").stdout == "n\n11\n"


@pytest.mark.parametrize(
    "query",
    ["(SELECT 1) UNION ALL (SELECT 1)", "WITH 1 AS x SELECT x", "SHOW TABLES", "DESCRIBE jobs", "SELECT '; drop'"],
)
def test_questions_of_all_kinds(at_filled: DataFolder, query: str) -> None:
    assert run(query).exit_code == 0


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT 1; SELECT 2", "more than one statement"),
        ("DROP TABLE events_log", "this DROP is no question, and `ettwatch sql` changes nothing"),
        ("/* select */ INSERT INTO jobs_log VALUES (1)", "this INSERT is no question"),
        ("WITH 1 AS x INSERT INTO jobs_log SELECT x", "an INSERT INTO is no question"),
        ("", "the query is empty"),
        (" ; ", "the query is empty"),
        ("-- only a comment", "the query is empty"),
        ("SELECT 1 FORMAT JSON", "leave FORMAT out of the query"),
        ("SELECT nothing FROM jobs", "nothing"),
        ("SELECT * FROM job", "'job'"),
        ("SELECT FROM WHERE", "Syntax error"),
        ("SELECT throwIf(1)", "throwIf"),
    ],
)
def test_what_cannot_be_answered_is_one_readable_line(at_filled: DataFolder, query: str, words: str) -> None:
    result = run("-", stdin=query)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert words in line
    assert "Stack trace" not in line
    assert len(line) < 600


def test_no_data_folder(tmp_path: Path) -> None:
    result = run("SELECT 1", "--data", str(tmp_path / "none"))
    assert result.exit_code == 2
    assert "there is no data folder" in result.stderr


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT 1 INTO OUTFILE '{}'", "INTO OUTFILE is not allowed"),
        ("SELECT * FROM file('/etc/passwd', 'LineAsString')", "file() is not allowed"),
        ("SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')", "url() is not allowed"),
        ("DESCRIBE s3('http://127.0.0.1:1/x')", "s3() is not allowed"),
        ("SELECT * FROM executable('id', 'TSV', 'x String')", "executable() is not allowed"),
    ],
)
def test_nothing_outside_the_tables_is_reached(at_filled: DataFolder, tmp_path: Path, query: str, words: str) -> None:
    result = run(query.format(tmp_path / "x"))
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "x").exists()


def test_a_refused_with_is_told_by_its_insert(at_filled: DataFolder) -> None:
    assert "begin with one of" not in run("WITH 1 AS x INSERT INTO jobs_log SELECT x").stderr
