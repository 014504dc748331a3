"""The watchers that ask: Slurm by its commands, Ray by its dashboard over real HTTP."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ettwatch_app.commands.watch import watch
from ettwatch_schemas import Event, decode_event
from ettwatch_sources import SpoolSink, line_of
from ettwatch_sources.ray.words import ERRORS, STATUSES
from ettwatch_sources.slurm.watcher import SlurmPoller, run_command
from ettwatch_sources.watch import Tracker, follow
from ettwatch_sources.watch.cursor import Cursor, CursorError
from ettwatch_sources.watch.facts import Ended, Finished, Hint, Started, Submitted
from ettwatch_sources.watch.loop import PollError
from support.imported import folded
from support.receiver import Receiver, receiving

T = 1_762_164_000
COLUMNS = (
    "JobID|JobIDRaw|JobName|Account|User|Partition|Cluster|State|Reason|Submit|Eligible|Start|End|ExitCode|AllocTRES"
)
HELP = (
    "JobID JobIDRaw JobName Account User\nPartition Cluster State Reason Submit Eligible Start End ExitCode AllocTRES"
)


def row(job: int, state: str, submit: int, start: int | None, end: int | None) -> str:
    times = [str(T + at) if at is not None else "Unknown" for at in (submit, submit, start, end)]
    cells = [str(job), str(job), "train", "ads", "ann", "gpu", "c1", state, "None", *times, "0:0", "gres/gpu=8"]
    return "|".join(cells)


class Slurm:
    """What sacct would print now, and how it was called."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.calls: list[Sequence[str]] = []
        self.fails = False

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> bytes:
        assert environment["SLURM_TIME_FORMAT"] == "%s"
        self.calls.append(command)
        if self.fails:
            raise PollError("sacct failed (1): slurmdbd is down")
        text = HELP if "--helpformat" in command else "\n".join([COLUMNS, *self.rows]) + "\n"
        return text.encode()


def told(folder: Path) -> list[Event]:
    files = sorted(folder.glob("*.jsonl"))
    return [decode_event(line) for file in files for line in file.read_bytes().splitlines()]


def poll(slurm: Slurm, folder: Path, at: int) -> int:
    """One poll by a watcher that starts anew, as after a crash."""
    poller = SlurmPoller("c1", (T - 86_400) * 1_000_000, run=slurm.run)
    cursor = Cursor(folder / "cursor.json", "slurm")
    poller.load(cursor.load())
    sink = SpoolSink(str(folder), "watch-slurm")
    written = follow(
        poller,
        sink,
        cursor,
        every_s=1,
        clock=lambda: (T + at) * 1_000_000,
        sleep=lambda s: True,
        say=lambda s: None,
        once=True,
    )
    sink.close()
    return written


def test_a_job_that_is_queued_preempted_requeued_and_done(tmp_path: Path) -> None:
    slurm = Slurm()
    steps: list[tuple[int, list[str]]] = [
        (10, [row(7, "PENDING", 0, None, None)]),
        (100, [row(7, "RUNNING", 0, 60, None)]),
        (200, [row(7, "RUNNING", 0, 60, None)]),
        (3700, [row(7, "PREEMPTED", 0, 60, 3600), row(7, "PENDING", 3600, None, None)]),
        (4000, [row(7, "PREEMPTED", 0, 60, 3600), row(7, "RUNNING", 3600, 3900, None)]),
        (9000, [row(7, "PREEMPTED", 0, 60, 3600), row(7, "COMPLETED", 3600, 3900, 8000)]),
    ]
    numbers = []
    for at, rows in steps:
        slurm.rows = rows
        numbers.append(poll(slurm, tmp_path, at))
    # Nothing new in the third poll.
    assert numbers[2] == 0
    (job,) = (shot.summary for shot in folded(told(tmp_path)).values())
    assert (job.job, job.attempts, job.nof_preempted, job.e2e_s) == ("c1-7", 2, 1, 8000.0)
    assert (job.components["scheduling"], job.status, job.gpus) == (60 + 300, "succeeded", 8)
    # Each poll begins ten minutes before the one before.
    asked = [word for call in slurm.calls for word in call if word.startswith("--starttime")]
    assert asked[-1] == f"--starttime=uts{T + 4000 - 600}"
    assert "--duplicates" in slurm.calls[1]
    assert "--allocations" in slurm.calls[1]
    # Fields that this version of sacct does not have are not asked for.
    assert not any("Restarts" in word for call in slurm.calls for word in call)


def test_polled_at_any_time_it_says_the_same(tmp_path: Path) -> None:
    """Whatever was missed in between: what is told of the whole life of the job is equal."""
    final = [row(7, "PREEMPTED", 0, 60, 3600), row(7, "COMPLETED", 3600, 3900, 8000)]
    often, once = Slurm(), Slurm()
    for at, rows in ((100, [row(7, "RUNNING", 0, 60, None)]), (9000, final)):
        often.rows = rows
        poll(often, tmp_path / "often", at)
    once.rows = final
    poll(once, tmp_path / "once", 9000)
    one, other = (folded(told(tmp_path / name))["c1-7"].summary for name in ("often", "once"))
    assert one.model_copy(update={"version": 0}) == other.model_copy(update={"version": 0})


def test_an_id_that_is_given_again_weeks_later(tmp_path: Path) -> None:
    slurm = Slurm()
    slurm.rows = [row(7, "COMPLETED", 0, 60, 3600)]
    poll(slurm, tmp_path, 4000)
    slurm.rows = []
    poll(slurm, tmp_path, 3 * 86_400)
    assert '"known":{}' in (tmp_path / "cursor.json").read_text()
    later = 20 * 86_400
    slurm.rows = [row(7, "RUNNING", later, later + 60, None)]
    poll(slurm, tmp_path, later + 100)
    assert set(folded(told(tmp_path))) == {"c1-7", "c1-7@20251123T100000"}


def test_a_crash_before_the_cursor_moved_tells_twice_with_the_same_ids(tmp_path: Path) -> None:
    slurm = Slurm()
    slurm.rows = [row(7, "COMPLETED", 0, 60, 3600)]
    first = poll(slurm, tmp_path, 4000)
    (tmp_path / "cursor.json").unlink()
    assert poll(slurm, tmp_path, 4000) == first
    ids = [event.id for event in told(tmp_path)]
    assert len(ids) == 2 * len(set(ids))


def test_a_scheduler_that_does_not_answer_is_asked_less_and_less(tmp_path: Path) -> None:
    slurm = Slurm()
    waits: list[float] = []
    said: list[str] = []
    slurm.fails = True

    def sleep(seconds: float) -> bool:
        waits.append(seconds)
        slurm.fails = len(waits) < 4
        return len(waits) > 5

    poller = SlurmPoller(None, T * 1_000_000, run=slurm.run)
    cursor = Cursor(tmp_path / "c.json", "slurm")
    sink = SpoolSink(str(tmp_path), "x")
    follow(poller, sink, cursor, every_s=30, clock=lambda: T * 1_000_000, sleep=sleep, say=said.append)
    assert waits == [60, 120, 240, 300, 30, 30]
    assert "slurmdbd is down" in said[0]


def test_commands_that_are_not_there_or_fail(tmp_path: Path) -> None:
    with pytest.raises(PollError, match="is not there"):
        run_command(["no-such-sacct"], {})
    with pytest.raises(PollError, match=r"failed \(3\): sorry"):
        run_command(["sh", "-c", "echo sorry >&2; exit 3"], {})
    with pytest.raises(PollError, match="give this user the right to"):
        run_command([str(tmp_path)], {})
    sacct = tmp_path / "sacct"
    sacct.write_text("#!/bin/sh\nexit 1\n")
    sacct.chmod(0o755)
    with pytest.raises(PollError, match="it said nothing; where there is no accounting, ask with --via scontrol"):
        run_command([str(sacct)], {})
    assert run_command(["sh", "-c", "echo $SLURM_TIME_FORMAT"], {"SLURM_TIME_FORMAT": "%s"}) == b"%s\n"


def test_the_command_with_a_sacct_of_its_own(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "sacct"
    tool.parent.mkdir()
    rows = "\n".join([COLUMNS, row(7, "RUNNING", 0, 60, None)])
    tool.write_text(f"#!/bin/sh\ncase $1 in --helpformat) echo '{HELP}';; *) cat <<'X'\n{rows}\nX\nesac\n")
    tool.chmod(0o755)
    env = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    code = "from ettwatch_app.commands.watch import watch; watch()"
    words = [sys.executable, "-c", code, "slurm", "--out", str(tmp_path / "spool"), "--every", "1s"]
    process = subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 90
        while not list((tmp_path / "spool").glob("*.jsonl")) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert [event.kind for event in told(tmp_path / "spool")] == [
        "job_submitted",
        "phase_started",
        "phase_ended",
        "attempt_started",
    ]
    assert json.loads((tmp_path / "spool/.cursors/slurm.json").read_text())["watcher"] == "slurm"
    missing = CliRunner().invoke(watch, ["slurm", "--once", "--out", str(tmp_path / "x"), "--via", "scontrol"])
    assert missing.exit_code == 2
    assert "scontrol is not there" in missing.output


@pytest.mark.parametrize(
    ("text", "code", "events"),
    [
        (f"{COLUMNS}\n{row(7, 'RUNNING', 0, 60, None)}\n", 0, 4),
        (f"{COLUMNS}\n", 0, 0),
        (f"{COLUMNS}\n{row(7, 'RUNNING', 0, 60, None)}\nslurmdbd: hiccup\n", 1, 4),
        (f"{COLUMNS}\nslurmdbd: hiccup\n", 2, 0),
        ("slurmdbd: hiccup\nagain\n", 2, 0),
        ("\udcff\udcfe\x01|||\n", 2, 0),
    ],
)
def test_once_says_by_its_exit_code_whether_lines_were_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int, events: int
) -> None:
    def run(command: Sequence[str], environment: Mapping[str, str]) -> bytes:
        return (HELP if "--helpformat" in command else text).encode("utf-8", "surrogateescape")

    monkeypatch.setattr("ettwatch_sources.slurm.watcher.subprocess.run", _ran(run))
    done = CliRunner().invoke(watch, ["slurm", "--once", "--out", str(tmp_path)])
    assert (done.exit_code, len(told(tmp_path))) == (code, events), done.output
    assert ("line" in done.stderr) == (code > 0)


def test_scontrol_of_a_cluster_without_jobs_refuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ettwatch_sources.slurm.watcher.subprocess.run", _ran(lambda *_: b"No jobs in the system\n"))
    done = CliRunner().invoke(watch, ["slurm", "--once", "--via", "scontrol", "--out", str(tmp_path)])
    assert (done.exit_code, done.stderr) == (0, "0 events told\n")


def _ran(run: Callable[[Sequence[str], Mapping[str, str]], bytes]) -> Callable[..., Any]:
    return lambda command, env, **_: subprocess.CompletedProcess(command, 0, run(command, env), b"")


RAY = {
    "type": "SUBMISSION",
    "job_id": "02000000",
    "submission_id": "raysubmit_1",
    "status": "PENDING",
    "entrypoint": "python train.py",
    "message": "Job has not started yet.",
    "error_type": None,
    "start_time": T * 1000,
    "end_time": None,
    "metadata": {"team": "ads"},
    "entrypoint_num_gpus": 4,
}


def ray(receiver: Receiver, folder: Path, *jobs: dict[str, Any]) -> Any:
    receiver.body = list(jobs)
    return CliRunner().invoke(
        watch, ["ray", "--once", "--address", receiver.url, "--out", str(folder), "--cluster", "r1"]
    )


def test_ray_jobs_from_the_dashboard(tmp_path: Path) -> None:
    with receiving() as receiver:
        assert ray(receiver, tmp_path, RAY).exit_code == 0
        running = {**RAY, "status": "RUNNING", "message": "Job is currently running."}
        assert ray(receiver, tmp_path, running).exit_code == 0
        assert ray(receiver, tmp_path, running).exit_code == 0
        assert receiver.posts[0][0] == "/api/jobs/"
        events = told(tmp_path)
        assert [event.kind for event in events] == ["job_submitted", "attempt_started"]
        # It was seen waiting, so that it has started since: by the watcher's clock.
        assert abs(events[1].ts / 1e6 - time.time()) < 60


def test_ray_jobs_that_failed_and_were_stopped(tmp_path: Path) -> None:
    failed = {
        **RAY,
        "status": "FAILED",
        "end_time": (T + 600) * 1000,
        "error_type": "JOB_SUPERVISOR_ACTOR_DIED",
        "message": "Unexpected error: the actor died: its node is gone",
    }
    stopped = {**RAY, "submission_id": "raysubmit_2", "status": "STOPPED", "end_time": (T + 60) * 1000}
    done = {**RAY, "submission_id": None, "job_id": "03000000", "status": "SUCCEEDED", "end_time": (T + 90) * 1000}
    odd = {**RAY, "submission_id": "raysubmit_3", "status": "CONFUSED"}
    with receiving() as receiver:
        result = ray(receiver, tmp_path, failed, stopped, done, odd, {"status": "RUNNING"})
        assert result.exit_code == 1
        assert "a job without an id or a start_time is refused" in result.output
        assert ray(receiver, tmp_path / "x", {"status": "RUNNING"}).exit_code == 2
    assert "status CONFUSED is not known here" in result.output
    jobs = {name: shot.summary for name, shot in folded(told(tmp_path)).items()}
    found = {name: (job.status, job.nof, job.e2e_s, job.gpus) for name, job in jobs.items()}
    assert found == {
        "raysubmit_1": ("failed", 1, 600.0, 4),
        "raysubmit_2": ("cancelled", 0, 60.0, 4),
        "03000000": ("succeeded", 0, 90.0, 4),
        "raysubmit_3": ("pending", 0, 0.0, 4),
    }
    (end,) = (e for e in told(tmp_path) if e.kind == "attempt_ended" and e.job == "raysubmit_1")
    assert end.cause == "hardware"
    assert set(STATUSES) == {"PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"}
    assert len(ERRORS) == 8


def test_a_dashboard_that_is_none(tmp_path: Path) -> None:
    with receiving() as receiver:
        receiver.answers = [(404, {}, "no")]
        assert "is it the address of the dashboard?" in ray(receiver, tmp_path).output
    gone = CliRunner().invoke(watch, ["ray", "--once", "--address", "http://127.0.0.1:9", "--out", str(tmp_path)])
    assert gone.exit_code == 2
    assert gone.output == (
        "Error: nothing listens at http://127.0.0.1:9; is the dashboard up, the port right? name it with --address\n"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_a_dashboard_that_wants_a_token(tmp_path: Path, status: int) -> None:
    with receiving() as receiver:
        receiver.answers = [(status, {}, "no")]
        assert "name its file with --token-file" in ray(receiver, tmp_path).output


@pytest.mark.parametrize("content", [b"", b"two\nlines", b"\xff\xfe", "wörd".encode()])
def test_a_file_that_holds_no_token(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    done = CliRunner().invoke(watch, ["ray", "--once", "--token-file", str(file), "--out", str(tmp_path)])
    assert (done.exit_code, done.output) == (
        2,
        f"Error: {file} holds no token: it should be one word; name another --token-file\n",
    )


def test_an_address_with_a_password_is_refused_and_not_shown(tmp_path: Path) -> None:
    words = ["ray", "--once", "--address", "http://me:geheim@127.0.0.1:9", "--out", str(tmp_path)]
    done = CliRunner().invoke(watch, words)
    assert done.exit_code == 2
    assert "use --token-file" in done.output
    assert "geheim" not in done.output


def test_a_cursor_of_another_watcher_and_a_broken_one(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    Cursor(path, "ray").save({"jobs": {}})
    with pytest.raises(CursorError, match="of 'ray', not of 'slurm'"):
        Cursor(path, "slurm").load()
    path.write_text("{")
    with pytest.raises(CursorError, match="move it away"):
        Cursor(path, "slurm").load()
    assert Cursor(tmp_path / "none", "slurm").load() == {}


class Clocked:
    """A tracker and what it told, in words."""

    def __init__(self) -> None:
        self.tracker = Tracker()
        self.told: list[str] = []

    def __call__(self, *facts: Any, now: int = 0) -> "Clocked":
        for fact in facts:
            self._note(partial(self.tracker.apply, fact, now))
        return self

    def tick(self, now: int) -> "Clocked":
        self._note(partial(self.tracker.tick, now))
        return self

    def _note(self, what: Callable[[], Any]) -> None:
        for one in what():
            event = decode_event(line_of(one))
            detail = getattr(event, "cause", "") if event.kind == "attempt_ended" else getattr(event, "trigger", "")
            self.told.append(f"{event.kind} {event.attempt} {detail}".strip())


def us(at: int) -> int:
    return (T + at) * 1_000_000


def test_a_hint_explains_an_end_and_is_waited_for() -> None:
    track = Clocked()(Submitted("k", "job", us(0)), Started("k", us(1)), Ended("k", us(9), "failed"), now=us(9))
    assert track.told == ["job_submitted None", "attempt_started 0 initial"]
    assert track.tick(us(15)).told[2:] == []
    track(Hint("k", us(8), "host_memory", "killed"), now=us(16))
    assert track.told[2:] == ["attempt_ended 0 host_memory"]
    late = Clocked()(Submitted("k", "job", us(0)), Started("k", us(1)), Ended("k", us(9), "failed"), now=us(9))
    assert late.tick(us(20)).told[2:] == ["attempt_ended 0 unknown"]


def test_the_first_of_many_hints_counts() -> None:
    track = Clocked()(Submitted("k", "job", us(0)), Started("k", us(1)), Hint("k", us(8), "network"))
    track(Hint("k", us(7), "gpu_memory"), Hint("k", us(8), "unknown"), Finished("k", us(9), "failed"))
    assert track.told[2:] == ["attempt_ended 0 gpu_memory", "job_ended None"]


def test_facts_about_nothing_and_facts_of_the_past() -> None:
    track = Clocked()(Started("nobody", us(1)), Ended("nobody", us(2), "failed"))
    assert track.told == []
    assert track.tracker.unplaced == 2
    track(Submitted("k", "job", us(0)), Ended("k", us(1), "failed"), Started("k", us(5)), Ended("k", us(3), "failed"))
    track(Started("k", us(5)), Started("k", us(2)), Started("k", us(6)))
    assert track.told == ["job_submitted None", "attempt_started 0 initial"]
