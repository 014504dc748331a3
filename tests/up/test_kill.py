"""kill -9 at any point loses nothing and doubles nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ettwatch_app.up.failpoint import POINTS, VARIABLE
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import Event
from support.jobs import random_job
from up.world import SECOND, as_lines

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("child.py")
NAME = "{}.host.{}.1790000000000.{}.jsonl"
CLOSED = ("succeeded", "failed", "cancelled", "lost")


def closed_by_now(events: list[Event]) -> bool:
    """Whether the job is over, whatever the hour: others go on growing while the test runs."""
    state = JobState(events[0].job)
    for event in events:
        apply(state, event, Rules(lateness=None))
    return snapshot(state, Rules(), time.time_ns() // 1_000).summary.status in CLOSED


def make_files(seed: int, jobs: int) -> dict[str, bytes]:
    """Files as trainers and people leave them: one or several to a job, mixed ones, doubled ones, bad lines."""
    rng = Random(seed)
    files: dict[str, bytes] = {}
    mixed: list[Event] = []
    made = 0
    while made < jobs:
        events = random_job(rng, f"job{made}", size=rng.choice(("small", "small", "medium")))
        if not closed_by_now(events):
            continue
        if rng.random() < 0.3:
            mixed += events
        else:
            parts = rng.choice((1, 2, 3))
            for part in range(parts):
                mine = [event for n, event in enumerate(events) if n % parts == part]
                files[NAME.format(f"job{made}", 100 + part, 0)] = as_lines(mine)
        made += 1
    mixed.sort(key=lambda event: event.ts)
    files["mixed.jsonl"] = as_lines(mixed) + b"nonsense\n"
    files["doubled.jsonl"] = files["mixed.jsonl"]
    return files


def fill(spool: Path, files: dict[str, bytes]) -> None:
    spool.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (spool / name).write_bytes(content)


def groups(files: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    """The files of each job by its name."""
    found: dict[str, dict[str, bytes]] = {}
    for name, content in files.items():
        found.setdefault(name.split(".")[0], {})[name] = content
    return found


@dataclass
class Run:
    process: subprocess.Popen[str]

    def wait_until_started(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if '"event": "started"' in line:
                return
            assert line.startswith("{"), line + self.end()[1]
        raise AssertionError(f"ended before it had started: {self.end()}")

    def end(self) -> tuple[int, str]:
        _, told = self.process.communicate(timeout=300)
        return self.process.returncode, told


def start(data: Path, spool: Path, *more: str, failpoint: str = "") -> Run:
    command = [sys.executable, str(CHILD), "up", str(data), str(spool), *more]
    environment = os.environ | {VARIABLE: failpoint} if failpoint else dict(os.environ)
    return Run(subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment))


def finish(data: Path, spool: Path) -> None:
    code, told = start(data, spool, "--once").end()
    assert '"event": "stopped"' in told, f"{code}: {told}"


def rows(data: Path) -> dict[str, list[list[Any]]]:
    done = subprocess.run([sys.executable, str(CHILD), "rows", str(data)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[list[Any]]] = json.loads(done.stdout)
    return found


def letters(data: Path) -> list[tuple[str, int]]:
    told = [json.loads(line) for line in (data / "rejected.jsonl").read_text().splitlines()]
    return sorted((Path(letter["file"]).name, letter["line"]) for letter in told)


@dataclass
class Undisturbed:
    files: dict[str, bytes]
    rows: dict[str, list[list[Any]]]
    letters: list[tuple[str, int]]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    root = tmp_path_factory.mktemp("undisturbed")
    files = make_files(7, 30)
    fill(root / "spool", files)
    finish(root / "data", root / "spool")
    published = rows(root / "data")
    assert len(published["jobs"]) == 30
    assert sorted(path.name for path in (root / "spool").iterdir()) == ["doubled.jsonl", "mixed.jsonl"]
    return Undisturbed(files, published, letters(root / "data"))


def check(data: Path, undisturbed: Undisturbed) -> None:
    found = rows(data)
    for view, expected in undisturbed.rows.items():
        assert found[view] == expected, view
    assert letters(data) == undisturbed.letters


def test_killed_at_each_point(tmp_path: Path, undisturbed: Undisturbed) -> None:
    data, spool, rng = tmp_path / "data", tmp_path / "spool", Random(1)
    fill(spool, undisturbed.files)
    for point in POINTS:
        if point == "ticked":
            continue  # needs a job that lives
        # Some points are passed only where there is something left to do there.
        if point in ("removed", "forgotten"):
            name = NAME.format("late", 1, len(list(spool.iterdir())))
            (spool / name).write_bytes(undisturbed.files["mixed.jsonl"].splitlines(keepends=True)[0])
        often = 1 if point in ("removed", "forgotten") else rng.randint(1, 3)
        code, told = start(data, spool, "--once", failpoint=f"{point}:{often}").end()
        assert code == -signal.SIGKILL, f"{point} was not passed: {told}"
    finish(data, spool)
    check(data, undisturbed)


@pytest.mark.parametrize("table", ["events_log", "phases_log", "attempts_log", "segments_log", "jobs_log"])
def test_killed_in_the_middle_of_a_batch_while_older_files_arrive(
    tmp_path: Path, undisturbed: Undisturbed, table: str
) -> None:
    data, spool = tmp_path / "data", tmp_path / "spool"
    # When it is killed, all is read, and the job is drawn by the clock of the machine. When it goes on, the other files
    # are unread at first, and their time, months ago, is the clock.
    told_of = [{row[0] for row in undisturbed.rows[view]} for view in ("phases", "segments")]
    jobs = {job: files for job, files in groups(undisturbed.files).items() if all(job in those for those in told_of)}
    fill(spool, min(jobs.values(), key=lambda files: sum(map(len, files.values()))))
    code, told = start(data, spool, "--once", "--die-before", table).end()
    assert code == -signal.SIGKILL, told
    fill(spool, undisturbed.files)
    finish(data, spool)
    check(data, undisturbed)


def test_killed_at_random_times_while_files_arrive(tmp_path: Path, undisturbed: Undisturbed) -> None:
    data, spool, rng = tmp_path / "data", tmp_path / "spool", Random(2)
    spool.mkdir()
    # The files of one job come together: one that came hours of its time later would rightly be too late.
    left = list(groups(undisturbed.files).values())
    rng.shuffle(left)
    for turn in range(10):
        share = -(-len(left) // (10 - turn))
        for group in left[:share]:
            fill(spool, group)
        left = left[share:]
        run = start(data, spool)
        run.wait_until_started()
        time.sleep(rng.uniform(0, 0.6))
        run.process.kill()
        run.end()
    finish(data, spool)
    check(data, undisturbed)


def without_state(data: Path) -> None:
    for path in data.glob("state.sqlite*"):
        path.unlink()


@pytest.mark.parametrize("between", [lambda data: None, without_state], ids=["as it is", "without state.sqlite"])
def test_the_same_events_again_change_nothing(
    tmp_path: Path, undisturbed: Undisturbed, between: Callable[[Path], None]
) -> None:
    data, spool = tmp_path / "data", tmp_path / "spool"
    for _ in range(2):
        fill(spool, undisturbed.files)
        finish(data, spool)
        between(data)
    found = rows(data)
    assert found == undisturbed.rows


def test_killed_while_only_time_goes_on(tmp_path: Path) -> None:
    data, spool = tmp_path / "data", tmp_path / "spool"
    begin = time.time_ns() // 1_000 - 60 * SECOND
    head = {"v": 1, "job": "live"}
    told = [
        head | {"id": "1", "kind": "job_submitted", "ts": begin},
        head | {"id": "2", "kind": "attempt_started", "ts": begin + 10 * SECOND, "attempt": 0},
    ]
    fill(spool, {"live.jsonl": b"".join(json.dumps(event).encode() + b"\n" for event in told)})
    code, said = start(data, spool, failpoint="ticked:3").end()
    assert code == -signal.SIGKILL, said
    (row,) = rows(data)["jobs"]
    assert "starting" in row
    end = head | {"id": "3", "kind": "job_ended", "ts": begin + 50 * SECOND, "outcome": "cancelled"}
    fill(spool, {"end.jsonl": json.dumps(end).encode() + b"\n"})
    finish(data, spool)
    found = rows(data)
    (row,) = found["jobs"]
    assert "cancelled" in row
    assert found["events"] == [[3, 3]]
    assert len(found["attempts"]) == 1
    # A whole hour cuts a segment in two, and the clock may pass one while this runs.
    begun_there = [row for row in found["segments"] if not row[4].endswith(":00:00+00:00")]
    assert {row[3] for row in begun_there} == {"hardware_setup", "scheduling"}
    assert len(begun_there) == 2
