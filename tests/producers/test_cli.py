import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner, Result

from ettwatch.cli import _EXTRAS, _NEEDS, Door, main

ROOT = Path(__file__).parents[2]


class Point(NamedTuple):
    """An entry point whose command does what it is told."""

    name: str
    value: str
    command: click.Command | None = None
    missing: str = ""

    def load(self) -> click.Command:
        if self.missing:
            raise ModuleNotFoundError(f"No module named {self.missing!r}", name=self.missing)
        assert self.command is not None
        return self.command


def door(*points: Point) -> Door:
    found = Door(name="ettwatch")
    found.__dict__["_entry_points"] = {point.name: point for point in points}
    return found


def call(*args: str, points: tuple[Point, ...] = ()) -> Result:
    return CliRunner().invoke(door(*points), args)


def raises(error: BaseException) -> Point:
    @click.command()
    def command() -> None:
        raise error

    return Point("it", "x:y", command)


def test_help_lists_commands_without_importing_them() -> None:
    code = """if True:
        import sys
        from ettwatch.cli import main
        try: main(["--help"])
        except SystemExit as end: print("exit", end.code)
        print(sorted(name for name in sys.modules if name.startswith(("ettwatch_", "kafka", "pydantic", "rich"))))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines()[-2:] == ["exit 0", "[]"]
    for name in ("demo", "doctor", "rebuild", "replay", "report", "run", "sql", "up"):
        assert f"\n  {name} " in done.stdout


def test_every_command_has_its_line() -> None:
    lines = CliRunner().invoke(main, ["-h"]).stdout.partition("Commands:\n")[2]
    assert set(re.findall(r"^  ([\w-]+) +\w", lines, re.MULTILINE)) == set(main.list_commands(click.Context(main)))


def test_version() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"ettwatch {version('ettwatch')}\n")


@pytest.mark.parametrize(
    ("missing", "extra"),
    [
        ("rich", "cli"),
        ("yaml", "cli"),
        ("clickhouse_connect.driver", "cli,sinks"),
        ("chdb", "cli,sinks"),
        ("faust", "cli,streams"),
        ("torch", "cli,trainer"),
    ],
)
@pytest.mark.parametrize("when", ["import", "call"])
def test_a_command_whose_extra_is_missing_says_what_to_install(missing: str, extra: str, when: str) -> None:
    point = Point("it", "x:y", missing=missing) if when == "import" else raises(ModuleNotFoundError("no", name=missing))
    result = call("it", points=(point,))
    assert (result.exit_code, result.stdout) == (2, "")
    name = missing.partition(".")[0]
    assert result.stderr == f"ettwatch it: needs {name}, which is not installed: pip install 'ettwatch[{extra}]'\n"


@pytest.mark.parametrize(
    ("command", "missing", "extras"),
    [
        ("report", "rich", "cli,sinks"),
        ("monitor", "yaml", "monitor"),
        ("monitor", "anyio", "monitor"),
        ("monitor", "chdb", "monitor,sinks"),
        ("sink", "clickhouse_connect", "cli,streams,server"),
        ("up", "anyio", "cli,sinks,monitor"),
    ],
)
def test_all_that_a_command_needs_is_told_at_once(command: str, missing: str, extras: str) -> None:
    result = call(command, points=(Point(command, "x:y", missing=missing),))
    assert result.exit_code == 2
    assert result.stderr.endswith(f"pip install 'ettwatch[{extras}]'\n")


def test_what_the_commands_need_is_what_the_docs_say() -> None:
    table = re.findall(r"^\| (\[`.*) \| [^|]+ \| (.+) \|$", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    told = {
        command: re.findall(r"`([a-z]+)`", needs.partition("(")[0])
        for commands, needs in table
        for command in re.findall(r"\[`([\w-]+)`\]", commands)
    }
    assert told.keys() >= _NEEDS.keys()
    assert {command: needs for command, needs in told.items() if needs not in ([], ["cli"])} == {
        command: needs.split(",") for command, needs in _NEEDS.items()
    }


def test_each_package_of_an_extra_can_be_told() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    modules = {"pyyaml": "yaml", "faust-streaming": "faust", "opentelemetry-proto": "opentelemetry"}
    for extra, packages in extras.items():
        for package in packages if extra not in ("dev", "all") else []:
            name = re.split(r"[\[<>=]", package)[0]
            if name != "ettwatch":
                assert _EXTRAS.get(modules.get(name, name.replace("-", "_"))), f"{name}, of {extra}"


def test_a_module_that_no_extra_brings_is_a_fault() -> None:
    result = call("it", points=(Point("it", "x:y", missing="ettwatch_app.typo"),))
    assert isinstance(result.exception, ModuleNotFoundError)


def test_a_missing_command_does_not_hide_the_others() -> None:
    points = (Point("broken", "x:y", missing="rich"),)
    result = call("--help", points=points)
    assert result.exit_code == 0
    assert "broken" in result.stdout


@pytest.mark.parametrize(
    ("point", "code", "words"),
    [
        (raises(click.UsageError("bad flag")), 2, "bad flag"),
        (raises(click.ClickException("no such file")), 2, "Error: no such file"),
        (raises(click.Abort()), 130, ""),
        (raises(KeyboardInterrupt()), 130, "interrupted\n"),
        (raises(SystemExit(1)), 1, ""),
        (raises(click.exceptions.Exit(1)), 1, ""),
        (Point("it", "x:y", click.Command("it", callback=lambda: None)), 0, ""),
        (Point("it", "x:y", click.Command("it", callback=lambda: 1)), 1, ""),
    ],
)
def test_exit_codes(point: Point, code: int, words: str) -> None:
    result = call("it", points=(point,))
    assert result.exit_code == code
    assert words in result.output


def test_ctrl_c_while_python_imports_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    done = subprocess.run(
        [sys.executable, "-c", "from ettwatch.cli import main; main()"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "Missing argument"),
        (["--gpus", "-1", "true"], "--gpus"),
        (["--label", "novalue", "true"], "'novalue' is not name=value"),
        (["--preempt-signal", "KILL", "true"], "'KILL' is none of"),
        (["--max-restarts", "many", "true"], "--max-restarts"),
        (["--nonsense", "true"], "No such option"),
    ],
)
def test_wrong_use_of_run_runs_nothing(args: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["run", *args])
    assert result.exit_code == 2
    assert words in result.stderr


def test_an_unknown_command_is_said_so() -> None:
    result = call("nonsense")
    assert result.exit_code == 2
    assert result.stderr.endswith("Error: No such command 'nonsense'.\n")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["reprot"], "No such command 'reprot'. Did you mean 'report'?"),
        (["REPORT"], "No such command 'REPORT'. Did you mean 'report'?"),
        (["inner", "chek"], "No such command 'chek'. Did you mean 'check'?"),
        (["inner", "repo"], "No such command 'repo'."),
        (["x" * 10_000], f"No such command '{'x' * 10_000}'."),
        (["repo'rt"], 'No such command "repo\'rt".'),
    ],
)
def test_an_unknown_command_that_is_like_a_known_one(args: list[str], line: str) -> None:
    inner = click.Group("inner", commands=[click.Command("check"), click.Command("show")])
    points = (Point("report", "x:y", click.Command("report")), Point("inner", "x:y", inner))
    result = call(*args, points=points)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, f"Error: {line}")


def test_a_reader_that_goes_away_is_no_fault() -> None:
    code = """if True:
        import click
        from ettwatch.cli import Door
        door = Door(name="ettwatch")
        door.add_command(click.Command("it", callback=lambda: [click.echo("x" * 1000) for _ in range(1000)]))
        door.get_command = lambda ctx, name: door.commands[name]
        door(["it"])
    """
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" | head -c 10; exit 0', sys.executable, code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("x" * 10, "")


@pytest.mark.parametrize("option", ["--backoff", "--grace"])
@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_waits_are_numbers_within_their_range(option: str, value: str) -> None:
    result = call("run", option, value, "--", "true")
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.stderr
