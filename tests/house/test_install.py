"""The wheel in empty environments: what each install brings, what it lets one do, what it weighs."""

import json
import re
from pathlib import Path

import pytest

from house.environment import Environment

BASE_MB = 25
SAYS_HELLO = "import ettwatch, ettwatch_schemas, sys; print(ettwatch.__version__, *sorted(sys.modules))"
HEAVY = {"torch", "numpy", "rich", "yaml", "chdb", "clickhouse_connect", "faust", "ettwatch_core"}
MIGRATES = """\
import pathlib, ettwatch_clickhouse as sink
store = sink.open_embedded(pathlib.Path("data"))
sink.migrate(store)
print(store.query("SELECT count() FROM ettwatch.jobs").rows)
store.close()
"""
# The trainer must not lean on what only the commands bring.
IMPORTS_ALL = """\
import importlib, pkgutil, torch, ettwatch_trainer as package
for module in pkgutil.iter_modules(package.__path__, "ettwatch_trainer."):
    importlib.import_module(module.name)
print("torch", torch.__version__)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    return Environment(tmp_path_factory.mktemp("base") / "venv", wheel)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> str:
    lines = [
        {"id": "1", "kind": "job_submitted", "ts": 1_790_000_000_000_000, "team": "ads"},
        {"id": "2", "kind": "attempt_started", "ts": 1_790_000_060_000_000, "attempt": 0, "gpus": 8},
        {"id": "3", "kind": "job_ended", "ts": 1_790_000_100_000_000, "outcome": "cancelled"},
    ]
    path = tmp_path_factory.mktemp("events") / "events.jsonl"
    path.write_text("".join(json.dumps({"v": 1, "job": "j", **line}) + "\n" for line in lines))
    return str(path)


def test_base_is_light(base: Environment) -> None:
    version, *modules = base.python(SAYS_HELLO).split()
    assert not HEAVY & set(modules)
    assert base.run("ettwatch", "--version").stdout.split()[-1] == version
    assert base.megabytes <= BASE_MB, f"the base install takes {base.megabytes:.1f} MB"


def test_base_runs_a_command_and_speaks_for_it(base: Environment, tmp_path: Path) -> None:
    done = base.run("ettwatch", "run", "--job", "j", "--spool", str(tmp_path), "--", "true")
    assert done.returncode == 0, done.stderr
    kinds = [json.loads(line)["kind"] for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert {"attempt_started", "attempt_ended", "job_ended"} <= set(kinds)


@pytest.mark.parametrize("command", ["replay", "report", "up", "sql", "doctor", "demo", "rebuild", "topics"])
def test_base_names_the_extra_that_a_command_needs(base: Environment, events: str, command: str) -> None:
    done = base.run("ettwatch", command, *{"replay": [events], "sql": ["SELECT 1"]}.get(command, []))
    assert done.returncode == 2
    assert re.search(r"pip install 'ettwatch\[(cli|sinks)[a-z,]*\]'", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_cli_replays(tmp_path: Path, wheel: Path, events: str) -> None:
    cli = Environment(tmp_path / "venv", wheel, "cli")
    done = cli.run("ettwatch", "replay", events, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["e2e_s"] == 100
    needs_sinks = cli.run("ettwatch", "sql", "SELECT 1")
    assert needs_sinks.returncode == 2
    assert re.search(r"ettwatch\[(cli,)?sinks\]", needs_sinks.stderr)


def test_sinks_stores(tmp_path: Path, wheel: Path) -> None:
    sinks = Environment(tmp_path / "venv", wheel, "sinks")
    assert sinks.python(MIGRATES).strip() == "[(0,)]"


def test_cli_and_sinks_report(tmp_path: Path, wheel: Path) -> None:
    both = Environment(tmp_path / "venv", wheel, "cli", "sinks")
    done = both.run("ettwatch", "demo", "--lite")
    assert done.returncode == 0, done.stderr
    assert "ETT" in done.stdout


def test_streams_brings_faust(tmp_path: Path, wheel: Path) -> None:
    streams = Environment(tmp_path / "venv", wheel, "streams")
    assert streams.python("import faust, ettwatch_core; print(ettwatch_core.RULES_VERSION)").strip()


@pytest.mark.torch
def test_trainer_brings_torch(tmp_path: Path, wheel: Path) -> None:
    trainer = Environment(tmp_path / "venv", wheel, "trainer")
    assert trainer.python(IMPORTS_ALL).split()[0] == "torch"
