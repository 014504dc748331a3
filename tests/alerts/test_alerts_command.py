import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ettwatch_app.commands.alerts import alerts
from ettwatch_clickhouse import connect, migrate
from support.clickhouse import front_process
from support.ports import free_port
from support.regress import DAY, T0, attempts, insert

ONE_OF_EACH = """\
version: 1
thresholds:
  failing: {metric: nof, above: 5}
maintenance:
  - {from: 2026-03-01T22:00:00Z, until: 2026-03-02T04:00:00Z}
"""
NOW = str(T0 + 40 * DAY)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The HTTP front, as `ettwatch up` has it, over a fleet in which one team got slower."""
    with front_process(tmp_path_factory.mktemp("front") / "clickhouse") as address:
        store = connect(address)
        migrate(store)
        insert(store, attempts(1, a_day=10, slow=5, since=35))
        store.close()
        yield address


def command(*words: str) -> Result:
    return CliRunner().invoke(alerts, list(words))


def test_a_round_by_hand_shows_what_fires_and_remembers_it(url: str, tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state"))
    first = command("once", "--clickhouse", url, *state, "--now", NOW, "--format", "json")
    assert first.exit_code == 1, first.output
    told = [json.loads(line) for line in first.stdout.splitlines()]
    key = next(alert["key"] for alert in told if alert["labels"].get("team") == "ads")
    again = command("once", "--clickhouse", url, *state, "--now", NOW, "--format", "json")
    assert [json.loads(line) for line in again.stdout.splitlines()] == told
    assert key in command("list", *state).output
    shown = command("explain", key, *state)
    assert "What explains most of it" in shown.output
    queries = command("explain", key, *state, "--sql").output
    assert queries.startswith("-- by day")
    assert command("accept", key, *state).exit_code == 0
    command("once", "--clickhouse", url, *state, "--now", NOW)
    assert key not in command("list", *state).output
    assert "resolved" in command("list", "--all", *state).output
    assert command("accept", key, *state).exit_code == 2
    assert command("audit", *state).output == "nothing was left out\n"


def _get(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def test_it_runs_answers_and_ends_when_asked(url: str, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    state = str(tmp_path / "state")
    program = [sys.executable, "-c", "from ettwatch_app.commands.alerts import alerts; alerts()", "run"]
    with subprocess.Popen([*program, "--clickhouse", url, "--state", state, "--web", address]) as process:
        try:
            deadline = time.monotonic() + 90
            while _get(address, "/readyz")[0] != 200 and time.monotonic() < deadline:
                time.sleep(0.2)
            assert _get(address, "/readyz") == (200, "ok\n")
            assert _get(address, "/healthz") == (200, "ok\n")
            assert "ettwatch_alerts_up 1.0" in _get(address, "/metrics")[1]
            second = command("once", "--clickhouse", url, "--state", state)
            assert second.exit_code == 2
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_a_database_that_is_away_does_nothing(tmp_path: Path) -> None:
    told = command("once", "--clickhouse", "http://127.0.0.1:1/ettwatch", "--state", str(tmp_path))
    assert told.exit_code == 2
    assert "cannot connect" in told.output


def test_a_file_of_rules_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("version: 1\nmetrics: {tts: {least_ratio: 1.2}}\n")
    told = command("check", str(file))
    assert told.exit_code == 0
    assert "\n  0 plain thresholds, 0 times of maintenance\n" in told.output
    file.write_text(ONE_OF_EACH)
    assert "\n  1 plain threshold, 1 time of maintenance\n" in command("check", str(file)).output
    file.write_text("version: 1\nmetrics: {tss: off}\n")
    told = command("check", str(file))
    assert told.exit_code == 2
    assert f"{file}:2: unknown metric 'tss'" in told.output
    assert command("check", str(tmp_path / "none.yaml")).exit_code == 2


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    for words in (("list",), ("explain", "x"), ("accept", "x"), ("audit",)):
        told = command(*words, "--state", str(tmp_path / "none"))
        assert told.exit_code == 2
        assert "nothing is remembered" in told.output
    assert command("once", "--clickhouse", "http://h/x", "--now", "soon").exit_code == 2


def test_every_command_and_option_has_help() -> None:
    for name, sub in alerts.commands.items():
        assert sub.help, name
        for parameter in sub.params:
            assert getattr(parameter, "help", "argument"), f"{name} {parameter.name}"
