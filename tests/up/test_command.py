"""The command as people and services run it, on the real engine."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import clickhouse_connect
import pytest
from click.testing import CliRunner

from ettwatch_app import datafolder
from ettwatch_app.commands.up import up
from ettwatch_app.datafolder import DataFolder, FolderError, FolderInUse, Ownership
from ettwatch_app.up.settings import SETTINGS, parse_interval, parse_lateness, parse_listen
from support.spooled import until
from up.world import SDK_NAME, beats

COMMAND = [str(Path(sys.executable).with_name("ettwatch")), "up"]


class Up:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.told: list[dict[str, Any]] = []

    def until(self, event: str) -> dict[str, Any]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.told.append(json.loads(line))
            if self.told[-1]["event"] == event:
                return self.told[-1]
        raise AssertionError(f"ended before it said {event}: {self.told}")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        assert self.process.stderr is not None
        self.told += [json.loads(line) for line in self.process.stderr]
        return self.process.wait(60)


@contextmanager
def living(data: Path, *more: str) -> Iterator[Up]:
    given = ["--data", str(data), "--log-format", "json", "--listen", "127.0.0.1:0", "--page", "off"]
    arguments = [*given, *more]
    process = subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True)
    try:
        yield Up(process)
    finally:
        process.kill()
        process.communicate()


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, env=os.environ | environment
    )


def wait_for(store: Any, sql: str, expected: object) -> None:
    until(lambda: store.query(sql).result_rows == expected)


def test_a_life(tmp_path: Path) -> None:
    """Clients, a second one, files that come and go, and a stop in good order."""
    folder = DataFolder(tmp_path / "data")
    with living(folder.root) as one:
        url = one.until("started")["url"]
        info = datafolder.living_up(folder)
        assert info is not None
        assert (info.pid, info.url, info.spools) == (one.process.pid, url, (str(folder.spool),))
        host, port = url.removeprefix("http://").split(":")

        client = clickhouse_connect.get_client(host=host, port=int(port), database="ettwatch")
        assert client.query("SELECT count() FROM jobs").result_rows == [(0,)]
        spooled = folder.spool / SDK_NAME.format(0)
        # It has lain there for a while: what is fresh may still be copied in, and is not removed.
        draft = tmp_path / "draft"
        draft.write_bytes(beats(1, 2, 3) + b"nonsense\n")
        os.utime(draft, (time.time() - 3600,) * 2)
        draft.rename(spooled)
        wait_for(client, "SELECT job, events FROM jobs", [("job", 3)])
        until(lambda: not spooled.exists())
        client.close()

        with datafolder.open_store(folder) as store:
            assert store.query("SELECT count() FROM events").rows == [(3,)]

        second = run("--data", str(folder.root), "--listen", "off")
        assert second.returncode == 2
        assert second.stderr.count("\n") == 1
        assert f"in use by `ettwatch up` (process {one.process.pid})" in second.stderr

        other = run("--data", str(tmp_path / "other"), "--listen", f"127.0.0.1:{port}")
        assert other.returncode == 2
        assert f"cannot serve on 127.0.0.1:{port}" in other.stderr.splitlines()[-1]

        assert one.end() == 1  # a line was rejected
        assert [told["event"] for told in one.told[-2:]] == ["progress", "stopped"] or one.told[-1][
            "event"
        ] == "stopped"
    assert not folder.up_json.exists()
    assert datafolder.living_up(folder) is None
    with datafolder.open_store(folder) as store:
        assert store.query("SELECT count() FROM events").rows == [(3,)]


def test_a_lock_left_by_kill_is_no_obstacle(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with living(folder.root) as one:
        one.until("started")
        one.process.kill()
        one.process.wait()
        assert folder.up_json.exists()
        assert datafolder.living_up(folder) is None
    done = run("--data", str(folder.root), "--once", "--listen", "off")
    assert done.returncode == 0, done.stderr


_NEVER_DOWN = """
import sys, threading
from ettwatch_app.up.runner import Runner

def never(runner):
    print("on its way down", flush=True)
    threading.Event().wait()

Runner._finish = never
from ettwatch.cli import main
main(["up", "--data", sys.argv[1], "--listen", "off", "--page", "off", "--log-format", "json"])
"""


def test_the_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    """In the middle of its way down, which would take for ever."""
    command = [sys.executable, "-c", _NEVER_DOWN, str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            Up(process).until("started")
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "on its way down\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 128 + signal.SIGTERM
        finally:
            process.kill()


_STOPPED_IN_A_LINE = """
import io, os, signal, sys

class Stderr(io.RawIOBase):
    told = False

    def writable(self):
        return True

    def write(self, data):
        written = os.write(2, data)
        if not self.told and b'"started"' in bytes(data):
            self.told = True
            os.kill(os.getpid(), signal.SIGTERM)
        return written

sys.stderr = io.TextIOWrapper(io.BufferedWriter(Stderr()), line_buffering=True)
from ettwatch.cli import main
main(["up", "--data", sys.argv[1], "--listen", "off", "--page", "off", "--log-format", "json"])
"""


def test_a_signal_in_the_middle_of_a_line_ends_it_in_good_order(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STOPPED_IN_A_LINE, str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert (told[:2], told[-1]) == (["started", "stopping"], "stopped")


_STOPPED_IN_ROLLUPS = """
import os, signal, sys
from ettwatch_clickhouse import Rollups

def run(rollups, **_):
    os.kill(os.getpid(), signal.SIGTERM)
    print(rollups.stopped)

Rollups.run = run
from ettwatch.cli import main
main(["up", "--data", sys.argv[1], "--once", "--listen", "off"])
"""


def test_the_first_signal_stops_the_rollups_of_once_too(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STOPPED_IN_ROLLUPS, str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_once_with_exit_codes(tmp_path: Path) -> None:
    data, spool = tmp_path / "data", tmp_path / "spool"
    nothing = run("--data", str(data), "--spool", str(spool), "--once", "--listen", "off")
    assert nothing.returncode == 2
    assert f"there is no spool folder {spool}" in nothing.stderr
    spool.mkdir()
    (spool / "a.jsonl").write_bytes(beats(1, 2))
    good = run("--once", ETTWATCH_DATA=str(data), ETTWATCH_SPOOL=str(spool), ETTWATCH_LISTEN="off")
    assert good.returncode == 0, good.stderr
    assert "2 events taken" in good.stderr
    (spool / "b.jsonl").write_bytes(b"nonsense\n")
    bad = run("--data", str(data), "--spool", str(spool), "--once", "--listen", "off")
    assert bad.returncode == 1
    assert "1 rejected" in bad.stderr


def test_for_some_time(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = run("--data", str(tmp_path / "data"), "--for", "300ms", "--listen", "off")
    assert done.returncode == 0
    assert time.monotonic() - begun < 100


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    done = run("--data", str(tmp_path / "file" / "data"), "--listen", "off")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"cannot write to the data folder {tmp_path / 'file' / 'data'}" in done.stderr

    def read_only(self: Path, *_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "touch", read_only)
    with pytest.raises(FolderError, match="Read-only file system"):
        datafolder.create(DataFolder(tmp_path / "data"))


def test_a_damaged_state_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "state.sqlite").write_bytes(b"this is no database, and long enough to be sure" * 99)
    done = run("--data", str(tmp_path / "data"), "--once", "--listen", "off")
    assert done.returncode == 2
    assert "state.sqlite" in done.stderr.splitlines()[-1]
    assert "move it away" in done.stderr


@pytest.mark.parametrize("table", ["jobs", "files"])
def test_so_it_is_where_only_a_page_is_damaged(tmp_path: Path, table: str) -> None:
    data = tmp_path / "data"
    (data / "spool").mkdir(parents=True)
    (data / "spool" / "a.jsonl").write_bytes(beats(1, 2))
    assert run("--data", str(data), "--once", "--listen", "off").returncode == 0
    with closing(sqlite3.connect(data / "state.sqlite")) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with (data / "state.sqlite").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    done = run("--data", str(data), "--once", "--listen", "off")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "move it away" in done.stderr
    (data / "state.sqlite").rename(tmp_path / "away")
    assert run("--data", str(data), "--once", "--listen", "off").returncode == 0


@pytest.mark.parametrize(("table", "told"), [("jobs_log", "ettwatch rebuild"), ("events_log", "into the spool")])
def test_damaged_parts_of_tables_are_told(tmp_path: Path, table: str, told: str) -> None:
    data = tmp_path / "data"
    (data / "spool").mkdir(parents=True)
    (data / "spool" / "a.jsonl").write_bytes(beats(1, 2))
    first = run("--data", str(data), "--once", "--listen", "off")
    assert "aside" not in first.stderr
    with datafolder.open_store(DataFolder(data)) as store:
        where = "SELECT path FROM system.parts WHERE active AND database = 'ettwatch' AND table = {table:String}"
        ((path,),) = store.query(where, {"table": table}).rows
    (Path(str(path)) / "data.bin").unlink()
    done = run("--data", str(data), "--once", "--listen", "off")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "aside" in line]
    assert table in line
    assert told in line


def test_ownership(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with Ownership(folder, "ettwatch sql"):
        with pytest.raises(FolderInUse, match=rf"in use by `ettwatch sql` \(process {os.getpid()}\)"):
            Ownership(folder, "ettwatch up")
        with pytest.raises(FolderInUse), datafolder.open_store(folder, wait_s=0.2):
            raise AssertionError("opened a folder that is owned")
    Ownership(folder, "ettwatch up").release()


_WAITS = """
import sys, time
from ettwatch_app.up import start

class Patient:
    monotonic = staticmethod(lambda: 0.0)  # its patience does not run out

    def sleep(self, seconds):
        print("waits", flush=True)
        time.sleep(seconds)

start.time = Patient()
from ettwatch.cli import main
main(["up", "--data", sys.argv[1], "--once", "--listen", "off"])
"""


def test_it_waits_for_a_command_that_owns_the_folder(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    owned = Ownership(folder, "ettwatch sql")
    command = [sys.executable, "-c", _WAITS, str(folder.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        with owned:
            assert waiting.stdout.readline() == "waits\n"
        waiting.stdout.read()
        assert waiting.wait(60) == 0


def test_what_a_killed_up_said_of_itself_is_not_believed(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with Ownership(folder, "ettwatch sql"):
        datafolder.announce(folder, datafolder.UpInfo(2**22 + 1, "http://127.0.0.1:1", "", ()))
        assert datafolder.living_up(folder) is None
        datafolder.announce(folder, datafolder.UpInfo(os.getpid(), "http://127.0.0.1:1", "", ()))
        assert datafolder.living_up(folder) is not None
    assert datafolder.living_up(folder) is None


def test_no_data_folder_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(FolderError, match="there is no data folder"),
        datafolder.open_store(DataFolder(tmp_path / "none")),
    ):
        raise AssertionError("opened nothing")


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--interval", "soon", "is no duration"),
        ("--interval", "0s", "is no duration"),
        ("--lateness", "-1h", "is no duration"),
        ("--listen", "0.0.0.0:8123", "is not loopback"),
        ("--listen", "127.0.0.1", "is no address"),
        ("--listen", "127.0.0.1:70000", "is no address"),
        ("--page", "0.0.0.0:9467", "is not loopback"),
        ("--page", "nowhere", "such as 127.0.0.1:9467"),
        ("--log-format", "xml", "'xml' is not one of"),
    ],
)
def test_wrong_options_are_told(option: str, value: str, told: str) -> None:
    done = CliRunner().invoke(up, [option, value])
    assert done.exit_code == 2
    assert told in done.output


def test_durations_and_addresses() -> None:
    assert [parse_interval(text) for text in ("90", "500ms", "5s", "10m", "6h", "1.5d")] == [
        *(90_000_000, 500_000, 5_000_000, 600_000_000, 21_600_000_000, 129_600_000_000)
    ]
    assert parse_lateness("none") is None
    assert parse_listen("off") is None
    assert parse_listen("8124") == parse_listen(":8124") == ("127.0.0.1", 8124)
    assert parse_listen("[::1]:0") == ("::1", 0)


def test_every_setting_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "up.md").read_text()
    options = {option for parameter in up.params for option in parameter.opts}
    assert options == {setting.option for setting in SETTINGS}
    for setting in SETTINGS:
        assert f"`{setting.option}" in page
        assert setting.variable is None or f"`{setting.variable}`" in page
        assert not setting.default or f"`{setting.default}`" in page
