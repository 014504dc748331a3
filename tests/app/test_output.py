"""Standard output that is full or closed, and widths at which nothing can be read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ettwatch_app.datafolder import DataFolder
from ettwatch_app.render import stdout_console

CASE = Path(__file__).parent.parent / "cases" / "01-worked-example.jsonl"


def shell(command: str, folder: Path, *args: str, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, *args],
        cwd=folder,
        env=os.environ | {"ETTWATCH_DATA": str(folder), "PYTHONUNBUFFERED": unbuffered},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(("where", "words"), [("> /dev/full", "No space left on device"), (">&-", "is closed")])
@pytest.mark.parametrize("args", [("report",), ("sql", "SELECT 1"), ("rebuild",), ("replay", str(CASE)), ("doctor",)])
def test_output_that_takes_nothing_is_one_line_and_code_2(
    own_filled: DataFolder, args: tuple[str, ...], where: str, words: str
) -> None:
    done = shell(f'"$0" -m ettwatch.cli "$@" {where}', own_filled.root, *args)
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert words in line
    assert done.returncode == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_without_room(tmp_path: Path, unbuffered: str) -> None:
    done = shell('"$0" -m ettwatch.cli --help > /dev/full', tmp_path, unbuffered=unbuffered)
    assert (done.returncode, done.stderr) == (2, "Error: cannot write the output: No space left on device\n")


@pytest.mark.parametrize(("columns", "width"), [("0", 80), ("19", 80), ("20", 20), ("", 100)])
def test_widths(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert stdout_console().width == width
