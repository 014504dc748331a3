"""docs/cli.md: every command and option is there, and its examples are what the commands print.

`UPDATE_DOCS=1 pytest tests/app/test_docs_cli.py` writes the output of the examples anew; look at the difference.
"""

import os
import re
import shlex
import subprocess
import sys
from glob import glob
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ettwatch.cli import main
from ettwatch.run_command import run
from ettwatch_app.datafolder import DataFolder

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "cli.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Pages that tell of the options of a command whose section in docs/cli.md only leads there.
ELSEWHERE = {
    name: ROOT / "docs" / page
    for name, page in (
        ("up", "up.md"),
        ("worker", "pipeline.md"),
        ("sink", "sink.md"),
        ("migrate", "clickhouse.md"),
        ("dlq", "dlq.md"),
        ("run", "run.md"),
        ("owners", "ownership.md"),
        ("windows", "windows.md"),
        ("alerts", "alerts.md"),
        ("monitor", "monitor.md"),
        ("advise", "advice.md"),
        ("top", "top.md"),
        ("preempt", "remedies/preemption.md"),
        ("bench-remedies", "remedies/index.md"),
        ("simulate", "simulator.md"),
        ("import", "importers.md"),
        ("watch", "sources.md"),
        ("export", "export.md"),
    )
}


def commands() -> dict[str, click.Command]:
    found = {point.name: point.load() for point in entry_points(group="ettwatch.commands")}
    return {"run": run, **found}


def section(name: str) -> str:
    found = re.search(rf"^## ettwatch {name}\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no section `## ettwatch {name}`"
    return found[1]


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_is_documented(name: str) -> None:
    command = commands()[name]
    told = section(name)
    if name in ELSEWHERE:
        assert ELSEWHERE[name].name in told
        told += ELSEWHERE[name].read_text("utf-8")
    options = [
        option for parameter in command.params if isinstance(parameter, click.Option) for option in parameter.opts
    ]
    missing = [option for option in options if not re.search(rf"{re.escape(option)}\b", told)]
    assert not missing, f"docs/cli.md does not tell of ettwatch {name} {missing}"
    known = set(options) | {"--help", "--"}
    extra = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", section(name))) - known
    others = {option for other in commands().values() for p in other.params for option in p.opts}
    assert not extra - others, f"docs/cli.md tells of {sorted(extra)}, which ettwatch {name} does not have"


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_has_help(name: str) -> None:
    command = commands()[name]
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"ettwatch {name} {parameter.opts[0]} has no help"


def shown_by(line: str, env: dict[str, str]) -> tuple[str, int]:
    """What a command line prints, and its exit code. What needs no shell is run in this process."""
    if "|" not in line:
        words = [str(path) for word in shlex.split(line)[1:] for path in (sorted(glob(word)) or [word])]
        result = CliRunner().invoke(main, words, prog_name="ettwatch", env=env)
        return result.output, result.exit_code
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, **env, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.stdout, done.returncode


def printed(lines: list[str], folder: DataFolder) -> str:
    """What a terminal shows when someone types the lines of a block that begin with `$`."""
    text = ""
    code = 0
    env = {"ETTWATCH_DATA": str(folder.root), "COLUMNS": "100", "NO_COLOR": "1"}
    for line in lines:
        if line == "$ echo $?":
            text += f"{line}\n{code}\n"
        elif line.startswith("$ "):
            output, code = shown_by(line[2:], env)
            text += f"{line}\n{output.replace(str(folder.root), '/data/ettwatch')}"
    return text


def test_the_examples_are_what_the_commands_print(filled: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = PAGE.read_text("utf-8")
    fresh = BLOCK.sub(lambda found: f"```console\n{printed(found[1].splitlines(), filled)}```", page)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(fresh, "utf-8")
        page = fresh
    assert fresh == page
