"""`ettwatch alerts silence`: beside a process that delivers, on record, and safe from kill -9."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ettwatch_app.commands.alerts import alerts
from ettwatch_monitor.alerts.deliver import Delivery, Outbox, Silence, parse_matchers
from support.delivery import MINUTE, ScriptedChannel, delivering, firing, resolved

RULES = 'version: 1\nsilences:\n  - {match: cluster="eu-1", until: 2199-01-01T00:00:00Z, comment: new switches}\n'


def command(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(alerts, ["silence", *words, "--state", str(folder)])


def rows(folder: Path, *words: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in command(folder, "list", "--format", "json", *words).stdout.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Outbox(tmp_path / "outbox.sqlite").close()
    return tmp_path


def clock() -> int:
    return time.time_ns() // 1_000


def test_a_silence_counts_at_once_for_a_process_that_delivers_and_its_end_too(folder: Path) -> None:
    chat, begin = ScriptedChannel(), clock()
    with delivering(folder / "outbox.sqlite", chat, now=begin) as delivery:
        delivery.put(firing("told", begin), begin)
        delivery.deliver_all(begin)
        told = command(
            folder, "add", "team=ads", 'metric=~"tt."', "--for", "1h", "--why", "new switches", "--by", "eve"
        )
        assert told.exit_code == 0, told.output
        assert "matches 1 of the alerts that fire now:\n  told" in told.output
        delivery.put(firing("kept back", begin), clock())
        delivery.put(firing("another team", begin, team="video"), clock())
        delivery.deliver_all(clock())
        assert chat.told == [("told", "firing"), ("another team", "firing")]
        (held,) = rows(folder)
        assert (held["number"], held["state"], held["made_by"], held["comment"]) == (1, "active", "eve", "new switches")
        assert held["matchers"] == 'team="ads", metric=~"tt."'
        assert command(folder, "end", "1", "--by", "bob", "--why", "done early").exit_code == 0
        delivery.deliver_all(clock())
        assert chat.told[2:] == [("kept back", "firing")]
    assert rows(folder) == []
    (past,) = rows(folder, "--all")
    assert (past["state"], past["ended_by"], past["ended_why"]) == ("ended", "bob", "done early")
    shown = command(folder, "list", "--all").output
    assert "new switches (eve)" in shown
    assert "by bob: done early" in shown


def test_a_silence_that_matches_nothing_says_so(folder: Path) -> None:
    told = command(folder, "add", "team=ads", "--for", "1h", "--why", "x")
    assert told.output.splitlines()[1:] == ["  it matches no alert that fires now"]


def test_numbers_are_never_given_twice(folder: Path) -> None:
    for number in (1, 2, 3):
        told = command(folder, "add", "team=ads", "--for", "1h", "--why", "x", "--format", "json")
        assert json.loads(told.stdout) == {"number": number, "firing": []}
        assert command(folder, "end", str(number)).exit_code == 0
        again = command(folder, "end", str(number))
        assert again.exit_code == 2
        assert "silence list" in again.output
    with Outbox(folder / "outbox.sqlite") as outbox:
        outbox.prune(clock() + 30 * 24 * 60 * MINUTE)
        assert outbox.silence(Silence(parse_matchers("a=b"), clock() + MINUTE)) == 4
        assert [entry.number for entry in outbox.book.on_record()] == [1, 2, 3, 4]


def test_what_will_begin_and_what_the_rules_say_is_listed(folder: Path) -> None:
    rules = folder / "rules.yaml"
    rules.write_text(RULES)
    later = ("--from", "2198-01-01T00:00:00Z", "--until", "2198-01-02T00:00:00+02:00")
    assert command(folder, "add", "team=ads", *later, "--why", "moving").exit_code == 0
    found = rows(folder, "--rules", str(rules))
    assert [(row["state"], row["source"], row["number"]) for row in found] == [
        ("pending", "command", 1),
        ("active", str(rules), None),
    ]
    assert "new switches" in command(folder, "list", "--rules", str(rules)).output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["team", "--for", "1h"], "is no matcher"),
        (['team=~"("', "--for", "1h"], "no regular expression"),
        (["team!=ads", "--for", "1h"], "matches any alert"),
        (['team=~".*"', "--for", "1h"], "matches any alert"),
        (["team=ads"], "say when it ends"),
        (["team=ads", "--for", "1h", "--until", "2198-01-01T00:00:00Z"], "one of them"),
        (["team=ads", "--for", "0"], "no length"),
        (["team=ads", "--for", "soon"], "--for: 'soon' is no duration"),
        (["team=ads", "--until", "tomorrow"], "--until: 'tomorrow' is no time"),
        (["team=ads", "--until", "2001-01-01T00:00:00Z"], "over already"),
        (["team=ads", "--from", "2198-01-02T00:00:00Z", "--until", "2198-01-01T00:00:00Z"], "ends? before it begins"),
        (["team=ads", "--for", "1h", "--by", " "], "--by: say it"),
        (["team=\udcff", "--for", "1h"], "no Unicode"),
    ],
)
def test_what_cannot_be_silenced_is_refused_and_nothing_is_kept(folder: Path, words: list[str], why: str) -> None:
    told = command(folder, "add", *words, "--why", "x")
    assert told.exit_code == 2
    assert why.replace("ends? ", "") in told.output.replace("would end ", "")
    assert rows(folder, "--all") == []


def test_without_an_outbox_nothing_is_made(tmp_path: Path) -> None:
    for words in (("add", "a=b", "--for", "1h", "--why", "x"), ("list",), ("end", "1")):
        told = command(tmp_path, *words)
        assert told.exit_code == 2
        assert "there is no outbox" in told.output
    assert list(tmp_path.iterdir()) == []


def test_an_outbox_of_before_gets_the_record(folder: Path) -> None:
    with Outbox(folder / "outbox.sqlite") as outbox:
        outbox.connection.execute("DROP TABLE silence_log")
        outbox.connection.execute("INSERT INTO silences VALUES (7, 'a=\"b\"', 0, ?, 'old')", (clock() + MINUTE,))
    (old,) = rows(folder)
    assert (old["number"], old["comment"]) == (7, "old")
    assert "old" in command(folder, "list").output
    told = command(folder, "add", "c=d", "--for", "1h", "--why", "x", "--format", "json")
    assert json.loads(told.stdout)["number"] == 8
    assert command(folder, "end", "7").exit_code == 0


def test_a_silence_that_was_confirmed_outlives_kill_9_of_everybody(folder: Path) -> None:
    program = [sys.executable, "-c", "from ettwatch_app.commands.alerts import alerts; alerts()", "silence", "add"]
    deliverer = (
        "import sys, time\nfrom pathlib import Path\nfrom ettwatch_monitor.alerts.deliver import Delivery, Outbox\n"
        "from support.delivery import ScriptedChannel, firing, resolved\n"
        "now = lambda: time.time_ns() // 1000\n"
        "with Delivery(Outbox(Path(sys.argv[1])), [ScriptedChannel()], now=now()) as delivery:\n"
        "    while True:\n"
        "        delivery.put(alert := firing(at=now()), now())\n"
        "        delivery.deliver_all(now())\n"
        "        delivery.put(resolved(alert, now()), now())\n"
        "        time.sleep(0.05)\n"  # who waits for the file is not told when it is free: it needs gaps to find
    )
    tests = Path(__file__).parents[1]
    confirmed = []
    with subprocess.Popen([sys.executable, "-c", deliverer, str(folder / "outbox.sqlite")], cwd=tests) as process:
        try:
            for number in range(4):
                words = [f"team=t{number}", "--for", "1h", "--why", "x", "--format", "json", "--state", str(folder)]
                with subprocess.Popen([*program, *words], stdout=subprocess.PIPE, text=True) as adding:
                    assert adding.stdout is not None
                    confirmed.append(json.loads(adding.stdout.readline())["number"])
                    adding.send_signal(signal.SIGKILL)
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGKILL)
    assert confirmed == [1, 2, 3, 4]
    assert [row["matchers"] for row in rows(folder)] == [f'team="t{number}"' for number in range(4)]
    begin = clock()
    chat = ScriptedChannel()
    with Delivery(Outbox(folder / "outbox.sqlite"), [chat], now=begin) as delivery:
        alert = firing("quiet", begin, team="t3")
        delivery.put(alert, begin)
        delivery.put(resolved(alert, begin + 1), begin + 1)
        delivery.deliver_all(begin + 1)
    assert ("quiet", "firing") not in chat.told
