import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest

from ettwatch_schemas import AttemptEnded, AttemptStarted, JobEnded, JobSubmitted
from support.spooled import ETTWATCH, environment, events, kinds, launch, lines, python, timeline, until

PYTHON = (sys.executable, "-c")


def ends(spool: Path) -> list[AttemptEnded]:
    return [event for event in events(spool) if isinstance(event, AttemptEnded) and event.source == "launcher"]


def starts(spool: Path) -> list[AttemptStarted]:
    return [event for event in events(spool) if isinstance(event, AttemptStarted)]


def job_ends(spool: Path) -> list[str]:
    return [event.outcome for event in events(spool) if isinstance(event, JobEnded)]


class Start(Protocol):
    def __call__(
        self, command: tuple[str, ...], *options: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]: ...


@pytest.fixture
def start(spool: Path) -> Iterator[Start]:
    """Start a command under `ettwatch run`, and kill it at the end of the test if it still runs."""
    started: list[subprocess.Popen[str]] = []

    def call(command: tuple[str, ...], *options: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*ETTWATCH, "run", *options, "--", *command],
            env=environment(spool, env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            with suppress(ValueError, OSError):
                os.killpg(child_of(process), signal.SIGKILL)
        process.kill()
        process.communicate()


def child_of(process: subprocess.Popen[str]) -> int:
    """The process id of a launcher's command."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        (pid,) = file.read().split()
    return int(pid)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def said(process: subprocess.Popen[str], word: str) -> None:
    """Wait for a line of the command's output."""
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


@pytest.mark.parametrize(
    ("command", "code", "outcome", "exit_code", "number", "cause"),
    [
        (("true",), 0, "succeeded", 0, None, "unknown"),
        (("sh", "-c", "exit 3"), 3, "failed", 3, None, "unknown"),
        (("sh", "-c", "kill -9 $$"), 137, "failed", None, 9, "unknown"),
        (("sh", "-c", "kill -SEGV $$"), 139, "failed", None, 11, "unknown"),
        (("sh", "-c", "sh -c 'kill -9 $$'; exit $?"), 137, "failed", 137, 9, "unknown"),
        (("sh", "-c", "kill -INT $$"), 130, "cancelled", None, 2, "unknown"),
        (("no-such-command",), 127, "failed", 127, None, "config"),
        (("/etc/passwd",), 126, "failed", 126, None, "config"),
    ],
)
def test_the_end_of_a_command_is_told(
    spool: Path, command: tuple[str, ...], code: int, outcome: str, exit_code: int, number: int, cause: str
) -> None:
    done = launch(command, spool, "--max-restarts", "0")
    assert done.returncode == code
    submitted, started, over, job_ended = events(spool)
    assert (submitted.kind, started.kind) == ("job_submitted", "attempt_started")
    assert isinstance(over, AttemptEnded)
    assert (over.outcome, over.exit_code, over.signal, over.cause) == (outcome, exit_code, number, cause)
    assert isinstance(job_ended, JobEnded)
    assert job_ended.outcome == outcome
    assert {event.source for event in events(spool)} == {"launcher"}
    assert {event.attempt for event in events(spool) if event.kind.startswith("attempt")} == {0}


def test_a_command_that_is_not_there_is_said_so(spool: Path) -> None:
    done = launch(("no-such-command", "--flag"), spool, "--max-restarts", "3", "--backoff", "0")
    assert done.stderr == "ettwatch run: no-such-command: command not found\n"
    assert len(ends(spool)) == 1


def test_what_it_is_told_about_the_job_goes_into_the_events_and_to_the_command(spool: Path, tmp_path: Path) -> None:
    done = launch(
        (
            *PYTHON,
            "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('ETTWATCH')}))",
        ),
        spool,
        *("--job", "a job", "--team", "ads", "--model", "dlrm", "--cluster", "c1", "--gpus", "16"),
        *("--label", "a=b", "--label", "c=d=e", "--attempt", "7"),
    )
    assert done.returncode == 0, done.stderr
    env = json.loads(done.stdout)
    run_dir = env.pop("ETTWATCH_RUN_DIR")
    assert not Path(run_dir).exists()
    assert re.fullmatch(r"\d+:\d+:[0-9a-f-]+", env.pop("ETTWATCH_CLOCK", "1:2:3"))
    assert env == {
        "ETTWATCH_ATTEMPT": "7",
        "ETTWATCH_CLUSTER": "c1",
        "ETTWATCH_GPUS": "16",
        "ETTWATCH_JOB": "a job",
        "ETTWATCH_LAUNCHER": "1",
        "ETTWATCH_MODEL": "dlrm",
        "ETTWATCH_SPOOL": str(spool),
        "ETTWATCH_TEAM": "ads",
    }
    submitted = events(spool)[0]
    assert isinstance(submitted, JobSubmitted)
    assert (submitted.job, submitted.team, submitted.model, submitted.cluster) == ("a job", "ads", "dlrm", "c1")
    assert (submitted.gpus, submitted.labels) == (16, {"a": "b", "c": "d=e"})
    assert [(event.gpus, event.attempt, event.trigger) for event in starts(spool)] == [(16, 7, None)]


def test_input_output_and_arguments_pass_through(spool: Path) -> None:
    code = "import sys; print(sys.argv[1:], sys.stdin.read()); print('e', file=sys.stderr)"
    done = subprocess.run(
        [*ETTWATCH, "run", *PYTHON, code, "--job", "x", "--", "*", ""],
        env=environment(spool),
        input="hello",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("['--job', 'x', '--', '*', ''] hello\n", "e\n")


def test_the_command_inherits_no_changed_signals_and_leads_its_group(spool: Path) -> None:
    done = launch(("cat", "/proc/self/status", "/proc/self/stat"), spool)
    bare = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True)
    status, without = (
        dict(line.split(":", 1) for line in text.splitlines() if ":" in line) for text in (done.stdout, bare.stdout)
    )
    assert status["SigIgn"] == without["SigIgn"]
    assert status["SigBlk"] == without["SigBlk"]
    pid, _, rest = done.stdout.splitlines()[-1].partition(" ")
    assert rest.rpartition(")")[2].split()[2] == pid


def test_signals_that_were_blocked_when_it_was_started_do_not_hang_it(spool: Path) -> None:
    code = """if True:
        import os, signal, sys
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        os.execv(sys.argv[1], sys.argv[1:])
    """
    call = [*ETTWATCH, "run", "--", "cat", "/proc/self/status"]
    done = subprocess.run(
        [*PYTHON, code, *call], env=environment(spool), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0
    blocked = int(re.findall(r"SigBlk:\t(\w+)", done.stdout)[0], 16)
    assert not blocked & (1 << (signal.SIGTERM - 1))


TRAINER = """
    import os, signal, sys, time, ettwatch
    rec = ettwatch.init()
    with rec.phase("trainer_init.device_init"): time.sleep(0.05)
    position = 400 if rec.attempt else 0
    rec.training_started(position=position, report_every_s=0.3)
    for n in range(8):
        time.sleep(0.06)
        rec.step(100)
        if rec.attempt == 0 and n == 5:
            os.kill(os.getpid(), signal.SIGKILL)
    rec.training_ended()
    with rec.phase("shutdown.model_publish"): time.sleep(0.03)
"""


def test_a_trainer_that_is_killed_and_recovers_has_a_timeline(spool: Path) -> None:
    done = launch((*PYTHON, textwrap.dedent(TRAINER)), spool, "--max-restarts", "2", "--backoff", "0.1", "--gpus", "8")
    assert done.returncode == 0, done.stderr
    assert "restart 1 of 2" in done.stderr
    found = events(spool)
    assert [(event.attempt, event.trigger) for event in starts(spool)] == [(0, "initial"), (1, "failure")]
    assert [(event.outcome, event.signal) for event in ends(spool)] == [("failed", 9), ("succeeded", None)]
    assert job_ends(spool) == ["succeeded"]
    summary = timeline(found).summary
    assert (summary.status, summary.attempts, summary.nof, summary.gpus, summary.flags) == ("succeeded", 2, 1, 8, [])
    assert summary.tts_s is not None
    assert summary.tts_s > 0.05
    assert len(summary.ttr_s) == 1
    assert summary.stages["scheduling"] >= 0.1
    assert summary.stages["shutdown.model_publish"] >= 0.03
    assert summary.stages["wasted_training.rework"] >= 0.05  # of 400 to 600
    assert summary.effective_s >= 0.5
    assert abs(sum(summary.components.values()) + summary.effective_s - summary.e2e_s) < 1e-6


@pytest.mark.parametrize(
    ("ending", "outcome", "cause", "message"),
    [
        ("raise ValueError('mine')", "failed", "user_code", "ValueError: mine"),
        ("raise type('OutOfMemoryError', (RuntimeError,), {})('CUDA out of memory')", "failed", "gpu_memory", None),
        ("rec.failed('lost a link', cause='network'); os._exit(7)", "failed", "network", "lost a link"),
        ("rec.failed('told'); sys.exit(0)", "failed", "unknown", "told"),
        ("rec.end('cancelled')", "cancelled", "unknown", None),
        ("sys.exit(3)", "failed", "unknown", None),
    ],
)
def test_what_the_trainer_knows_of_its_end_is_told_by_the_launcher(
    spool: Path, ending: str, outcome: str, cause: str, message: str | None
) -> None:
    launch((*PYTHON, f"import os, sys, ettwatch; rec = ettwatch.init()\n{ending}"), spool)
    (over,) = ends(spool)
    assert (over.outcome, over.cause) == (outcome, cause)
    assert message is None or over.message == message
    assert job_ends(spool) == [outcome]
    assert timeline(events(spool)).summary.status == outcome
    assert kinds(events(spool)).count("job_submitted") == kinds(events(spool)).count("attempt_started") == 1


def test_restarts_of_torchelastic_inside_one_launch_are_attempts(spool: Path) -> None:
    rank = "import ettwatch; rec = ettwatch.init(); rec.phase('trainer_init').__enter__()"
    agent = f"""
        import os, subprocess, sys
        elastic = {{"RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_MAX_RESTARTS": "1"}}
        for restart in "01":
            env = os.environ | elastic | {{"TORCHELASTIC_RESTART_COUNT": restart}}
            subprocess.run([sys.executable, "-c", {rank!r} + f"; 1/0"], env=env, stderr=subprocess.DEVNULL)
        sys.exit(1)
    """
    launch((*PYTHON, textwrap.dedent(agent)), spool, "--job", "j", "--max-restarts", "1", "--backoff", "0")
    told = {(event.attempt, event.source) for event in starts(spool)}
    assert {(0, "launcher"), (1, "trainer"), (2, "launcher"), (3, "trainer")} <= told
    assert {attempt for attempt, _ in told} == {0, 1, 2, 3}
    assert [(event.attempt, event.cause) for event in ends(spool)] == [(number, "user_code") for number in range(4)]
    summary = timeline(events(spool)).summary
    assert (summary.attempts, summary.nof, summary.status) == (4, 4, "failed")
    assert launch(("true",), spool, "--job", "j").returncode == 0
    assert starts(spool)[-1].attempt == 4


HANDLER = """
    import signal, sys, time
    def handler(number, frame):
        print(f"got {signal.Signals(number).name}", flush=True)
        sys.exit(CODE)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT"):
        signal.signal(getattr(signal, name), handler)
    print("ready", flush=True)
    while True: time.sleep(0.05)
"""


@pytest.mark.parametrize(
    ("name", "code", "options", "outcome"),
    [
        ("SIGTERM", 0, (), "preempted"),
        ("SIGTERM", 5, (), "preempted"),
        ("SIGINT", 0, (), "cancelled"),
        ("SIGHUP", 1, (), "cancelled"),
        ("SIGUSR1", 0, (), "succeeded"),
        ("SIGUSR2", 4, (), "failed"),
        ("SIGQUIT", 3, (), "failed"),
        ("SIGUSR1", 0, ("--preempt-signal", "usr1"), "preempted"),
        ("SIGTERM", 0, ("--preempt-signal", "SIGUSR1"), "cancelled"),
    ],
)
def test_signals_are_passed_on(
    start: Start, spool: Path, name: str, code: int, options: tuple[str, ...], outcome: str
) -> None:
    command = (*PYTHON, textwrap.dedent(HANDLER).replace("CODE", str(code)))
    process = start(command, *options, "--max-restarts", "0")
    said(process, "ready")
    process.send_signal(getattr(signal, name))
    assert finish(process) == (code, f"got {name}\n", "")
    told = ends(spool)
    assert {event.outcome for event in told} == {outcome}
    assert told[-1].exit_code == code
    # A preemption is told when its signal comes, too: there may be no later. And the job may be queued again.
    assert len(told) == (2 if outcome == "preempted" else 1)
    assert job_ends(spool) == ([] if outcome == "preempted" else [outcome])


def test_a_command_that_has_no_handler_dies_of_the_signal(start: Start, spool: Path) -> None:
    process = start(("sh", "-c", "echo ready; exec sleep 30"), "--max-restarts", "5")
    said(process, "ready")
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143
    assert (ends(spool)[-1].outcome, ends(spool)[-1].signal) == ("preempted", 15)
    assert len(starts(spool)) == 1  # it is the scheduler's to start it again


def test_a_preemption_is_known_even_if_the_launcher_is_killed_right_after(start: Start, spool: Path) -> None:
    stubborn = "trap '' TERM; echo ready; while true; do sleep 0.05; done"
    process = start(("sh", "-c", stubborn), env={"ETTWATCH_PREEMPT_CAUSE": "maintenance"})
    said(process, "ready")
    process.send_signal(signal.SIGTERM)
    until(lambda: ends(spool))
    command = child_of(process)
    process.kill()
    with suppress(ProcessLookupError):  # the kernel may have ended it already
        os.killpg(command, signal.SIGKILL)
    finish(process)
    assert [(event.outcome, event.cause) for event in ends(spool)] == [("preempted", "maintenance")]
    assert timeline(events(spool)).summary.status == "recovering"


def test_a_slurm_job_that_reaches_its_time_limit_is_told_so(start: Start, spool: Path) -> None:
    process = start(("sh", "-c", "echo ready; exec sleep 30"), env={"SLURM_JOB_END_TIME": str(int(time.time()))})
    said(process, "ready")
    process.send_signal(signal.SIGTERM)
    finish(process)
    assert {(event.outcome, event.cause) for event in ends(spool)} == {("preempted", "timeout")}


def test_a_trainer_that_finishes_all_the_same_has_succeeded(start: Start, spool: Path) -> None:
    code = """
        import signal, sys, time, ettwatch
        rec = ettwatch.init()
        def handler(number, frame):
            rec.end("succeeded")
            sys.exit(0)
        signal.signal(signal.SIGTERM, handler)
        print("ready", flush=True)
        while True: time.sleep(0.05)
    """
    process = start((*PYTHON, textwrap.dedent(code)))
    said(process, "ready")
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0
    assert ends(spool)[-1].outcome == "succeeded"
    assert job_ends(spool) == ["succeeded"]


@pytest.mark.parametrize(("number", "ended"), [(signal.SIGTERM, []), (signal.SIGINT, ["cancelled"])])
def test_a_signal_while_it_waits_to_restart_ends_the_job(
    start: Start, spool: Path, number: int, ended: list[str]
) -> None:
    process = start(("sh", "-c", "exit 3"), "--max-restarts", "9", "--backoff", "30")
    until(lambda: spool.exists() and ends(spool))
    process.send_signal(number)
    assert finish(process)[0] == 3
    assert (len(starts(spool)), job_ends(spool)) == (1, ended)


def test_restarts_end_with_the_first_success_or_the_last_failure(spool: Path, tmp_path: Path) -> None:
    count = f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); echo $((n+1)) > {tmp_path}/n; exit $((n < 2 ? 9 : 0))"
    assert launch(("sh", "-c", count), spool, "--max-restarts", "5", "--backoff", "0").returncode == 0
    assert [event.outcome for event in ends(spool)] == ["failed", "failed", "succeeded"]
    again = tmp_path / "again"
    assert launch(("sh", "-c", "exit 9"), again, "--max-restarts", "2", "--backoff", "0.01").returncode == 9
    assert [event.attempt for event in ends(again)] == [0, 1, 2]
    assert job_ends(again) == ["failed"]


def test_a_job_that_is_launched_again_goes_on_counting(spool: Path) -> None:
    assert launch(("false",), spool, "--job", "mine").returncode == 1
    assert launch(("sh", "-c", "kill -INT $$"), spool, "--job", "mine").returncode == 130
    done = launch(("true",), spool, "--job", "mine")
    assert done.stderr == "ettwatch run: job 'mine' has ended before (cancelled); this is attempt 2\n"
    launch(("true",), spool, "--job", "other")
    assert [(event.job, event.attempt, event.trigger) for event in starts(spool)] == [
        ("mine", 0, "initial"),
        ("mine", 1, "failure"),
        ("mine", 2, "manual"),
        ("other", 0, "initial"),
    ]


def test_a_job_that_nobody_named_leaves_nothing_to_count_on(spool: Path) -> None:
    launch(("true",), spool)
    assert [path.suffix for path in spool.iterdir()] == [".jsonl"]


def test_requeues_of_slurm_go_on_counting_where_the_book_is_not_to_be_found(spool: Path, tmp_path: Path) -> None:
    env = {"SLURM_JOB_ID": "5", "SLURM_CLUSTER_NAME": "alps"}
    for requeue in "01":
        folder = tmp_path / requeue
        options = ("--max-restarts", "1", "--backoff", "0")
        launch(("false",), folder, *options, env={**env, "SLURM_RESTART_COUNT": requeue})
        assert [(event.job, event.attempt) for event in starts(folder)] == [
            ("alps-5", 2 * int(requeue)),
            ("alps-5", 2 * int(requeue) + 1),
        ]


def lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_launcher_that_is_killed_takes_its_command_with_it(start: Start, spool: Path) -> None:
    process = start(("sh", "-c", "echo ready; exec sleep 60"))
    said(process, "ready")
    pid = child_of(process)
    process.kill()
    finish(process)
    until(lambda: not lives(pid))
    assert kinds(events(spool)) == ["job_submitted", "attempt_started"]


@pytest.mark.parametrize(("trap", "least"), [("", 0.0), ("trap '' TERM;", 0.3)])
def test_what_the_command_leaves_behind_is_ended(spool: Path, tmp_path: Path, trap: str, least: float) -> None:
    said = tmp_path / "said"
    left = f'sh -c "{trap} echo \\$\\$; touch {said}; while true; do sleep 0.05; done" &'
    left += f" while [ ! -e {said} ]; do sleep 0.05; done"
    before = time.monotonic()
    done = launch(("sh", "-c", left), spool, "--grace", "0.3")
    assert time.monotonic() - before >= least
    assert (done.returncode, done.stderr) == (0, "")
    until(lambda: not lives(int(done.stdout)))
    assert ends(spool)[0].outcome == "succeeded"


def test_inside_another_launcher_it_runs_and_says_nothing(spool: Path) -> None:
    inner = [*ETTWATCH, "run", "--", *PYTHON, "import ettwatch; print(ettwatch.init().job)"]
    done = launch(inner, spool, "--job", "outer")
    assert (done.returncode, done.stdout, done.stderr) == (0, "outer\n", "")
    assert kinds(events(spool)).count("job_submitted") == 1
    inner.insert(4, "--job=inner")
    launch(inner, spool, "--job", "outer", "--attempt", "7")
    assert {(event.job, event.attempt) for event in starts(spool)} == {("outer", 0), ("outer", 7), ("inner", 0)}


@pytest.mark.parametrize("env", [{"ETTWATCH_RANK": "1"}, {"SLURM_PROCID": "2"}, {"RANK": "3"}], ids=str)
def test_of_several_launchers_the_first_speaks(spool: Path, env: dict[str, str]) -> None:
    code = "import ettwatch\nwith ettwatch.init() as rec:\n with rec.phase('trainer_init'): pass"
    done = launch((*PYTHON, code), spool, "--job", "j", "--attempt", "3", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert kinds(events(spool)) == ["phase_started", "phase_ended"]
    assert {(event.job, event.attempt) for event in events(spool)} == {("j", 3)}


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"ETTWATCH_DISABLED": "1"}, ""),
        ({"ETTWATCH_ATTEMPT": "first"}, "ETTWATCH_ATTEMPT='first' is not a whole number"),
        ({"ETTWATCH_SPOOL": "/dev/null/spool"}, "cannot write to the spool folder"),
        ({"TMPDIR": "/dev/null", "TMP": "/dev/null", "TEMP": "/dev/null"}, ""),
        ({"ETTWATCH_CLOCK": "nonsense", "ETTWATCH_RUN_DIR": "/no/such"}, ""),
    ],
    ids=str,
)
def test_nothing_of_its_own_keeps_it_from_running_the_command(spool: Path, env: dict[str, str], words: str) -> None:
    done = launch((*PYTHON, "print('ran'); exit(4)"), spool, "--job", "j", env=env)
    assert (done.returncode, done.stdout) == (4, "ran\n")
    assert words in done.stderr
    assert done.stderr == "" if not words else done.stderr.count("\n") <= 3
    if "ETTWATCH_DISABLED" in env:
        assert not spool.exists()


@pytest.mark.parametrize(
    ("broken", "code", "told"),
    [
        ("import tempfile; tempfile.mkdtemp", 4, ["job_submitted", "attempt_started", "attempt_ended", "job_ended"]),
        (
            "import subprocess; subprocess.Popen",
            126,
            ["job_submitted", "attempt_started", "attempt_ended", "job_ended"],
        ),
        ("from ettwatch import launcher; launcher.resolve", 4, []),
        (
            "from ettwatch import book; book.claim",
            4,
            ["job_submitted", "attempt_started", "attempt_ended", "job_ended"],
        ),
    ],
)
def test_what_breaks_in_it_does_not_break_the_command(spool: Path, broken: str, code: int, told: list[str]) -> None:
    script = f"""if True:
        import sys
        def broken(*args, **kwargs): raise OSError(5, "broken")
        {broken} = broken
        from ettwatch.cli import main
        main(["run", "--job", "j", "--", "sh", "-c", "exit 4"])
    """
    done = python(script, spool)
    assert done.returncode == code
    assert done.stderr.count("broken") == 1
    assert (kinds(events(spool)) if spool.exists() else []) == told


def test_a_launcher_is_heard_while_its_command_is_silent(spool: Path) -> None:
    wait = f"while [ $(cat {spool}/*.jsonl | grep -c heartbeat) -lt 2 ]; do sleep 0.1; done"
    launch(("sh", "-c", wait), spool, env={"ETTWATCH_HEARTBEAT_EVERY_S": "0.1"})
    assert kinds(events(spool)).count("heartbeat") >= 2


def test_every_event_is_on_disk_before_the_command_runs_and_before_it_returns(spool: Path) -> None:
    done = launch(("sh", "-c", f"cat {spool}/*.jsonl"), spool)
    assert [json.loads(text)["kind"] for text in done.stdout.splitlines()] == ["job_submitted", "attempt_started"]
    assert len(lines(spool)) == 4
