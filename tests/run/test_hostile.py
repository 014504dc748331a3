"""Commands and users that make it hard for `ettwatch run`: it ends when its command does, and tells what was."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from ettwatch_schemas import AttemptEnded, AttemptStarted
from support.spooled import ETTWATCH, environment, events, kinds, launch, timeline, until

PYTHON = (sys.executable, "-c")


def ends(spool: Path, job: str | None = None) -> list[AttemptEnded]:
    found = [event for event in events(spool) if isinstance(event, AttemptEnded) and event.source == "launcher"]
    return [event for event in found if job in (None, event.job)]


def start(
    spool: Path, command: tuple[str, ...], *options: str, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*ETTWATCH, "run", *options, "--", *command],
        env=environment(spool, env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("holds", ["stderr", "both"])
def test_a_grandchild_that_lives_on_and_holds_the_pipe_does_not_hold_the_launcher(
    spool: Path, tmp_path: Path, holds: str
) -> None:
    # In a session of its own it is out of the launcher's reach; it has the pipe that the launcher made, and prints on.
    go = tmp_path / "go"
    code = f"""
        import os, subprocess, sys, textwrap
        grandchild = '''
        import os, sys, time
        while not os.path.exists(sys.argv[1]): time.sleep(0.05)
        os.write(2, b'late'); time.sleep(600)
        '''
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(grandchild), {str(go)!r}],
                                   start_new_session=True,
                                   stdout=None if {holds == "both"} else subprocess.DEVNULL)
        open({str(tmp_path / "pid")!r}, "w").write(str(process.pid))
        os.write(2, b"early")
        sys.exit(5)
    """
    read, write = os.pipe()
    process = subprocess.Popen(
        [*ETTWATCH, "run", "--job", "j", "--", *PYTHON, textwrap.dedent(code)],
        env=environment(spool),
        stdout=write,
        stderr=write,
    )
    os.close(write)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    grandchild = int((tmp_path / "pid").read_text())
    try:
        assert process.wait(200) == 5
        assert lives(grandchild)  # so it was not waited for
        assert [(event.outcome, event.exit_code) for event in ends(spool)] == [("failed", 5)]
        go.touch()
        said = b""
        while b"late" not in said:
            data = os.read(read, 100)
            assert data, said
            said += data
        assert said == b"earlylate"  # what it says later goes where it would have gone
    finally:
        with suppress(ProcessLookupError):
            os.kill(grandchild, signal.SIGKILL)
    assert os.read(read, 100) == b""  # and nobody else keeps the pipe open
    os.close(read)


@pytest.mark.parametrize("second", ["SIGTERM", "SIGINT"])
def test_a_second_signal_is_passed_on_and_the_end_is_told_once(spool: Path, second: str) -> None:
    code = """
        import signal, sys, time
        heard = []
        def handler(number, frame):
            heard.append(number)
            print(len(heard), flush=True)
            if len(heard) == 2: sys.exit(7)
        for number in (signal.SIGTERM, signal.SIGINT): signal.signal(number, handler)
        print("ready", flush=True)
        while True: time.sleep(0.05)
    """
    process = start(spool, (*PYTHON, textwrap.dedent(code)), "--job", "j", "--max-restarts", "3")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "1\n"
    process.send_signal(getattr(signal, second))
    out, err = process.communicate(timeout=200)
    assert (process.returncode, out, err) == (7, "2\n", "")
    # At the first signal, and at the end, which counts: an INT is the user's, whatever came before.
    last = "preempted" if second == "SIGTERM" else "cancelled"
    assert [event.outcome for event in ends(spool)] == ["preempted", last]
    assert timeline(events(spool)).summary.status == ("recovering" if second == "SIGTERM" else "cancelled")
    assert kinds(events(spool)).count("attempt_started") == 1


def test_a_storm_of_signals_costs_nothing(spool: Path, tmp_path: Path) -> None:
    over = tmp_path / "over"
    code = f"""
        import os, signal, time
        signal.signal(10, lambda *_: None)
        print('ready', flush=True)
        while not os.path.exists({str(over)!r}): time.sleep(0.05)
    """
    process = start(spool, (*PYTHON, textwrap.dedent(code)), "--job", "j")
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(2000):
        process.send_signal(signal.SIGUSR1)
    over.touch()
    _, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (0, "")
    assert [event.outcome for event in ends(spool)] == ["succeeded"]


def test_two_launchers_of_one_job_at_once_have_a_number_each(spool: Path) -> None:
    code = textwrap.dedent("""
        import ettwatch, glob, os, time
        rec = ettwatch.init()
        def begun():
            files = [open(path).read() for path in glob.glob(os.environ["ETTWATCH_SPOOL"] + "/*.jsonl")]
            return sum(text.count('"attempt_started"') for text in files)
        while begun() < 2: time.sleep(0.05)     # the other one lives, too
        print(rec.job, rec.attempt)
    """)
    both = [start(spool, (*PYTHON, code), "--job", "j") for _ in range(2)]
    said = [process.communicate(timeout=200) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(out for out, _ in said) == ["j 0\n", "j 1\n"]
    assert not "".join(err for _, err in said)
    assert sorted(event.attempt for event in ends(spool)) == [0, 1]
    assert timeline(events(spool)).summary.status == "succeeded"


def test_two_launchers_of_two_jobs_do_not_disturb_each_other(spool: Path) -> None:
    code = "import ettwatch, time; rec = ettwatch.init(); time.sleep(1); print(rec.job, rec.attempt)"
    env = {"ETTWATCH_KAFKA": "127.0.0.1:1"}  # so that they share out who sends, too
    both = [start(spool, (*PYTHON, code), "--job", job, env=env) for job in ("a", "b")]
    said = [process.communicate(timeout=200)[0] for process in both]
    assert (said, [process.returncode for process in both]) == (["a 0\n", "b 0\n"], [0, 0])
    for job in ("a", "b"):
        own = [event for event in events(spool) if event.job == job]
        assert (timeline(own).summary.status, timeline(own).summary.attempts) == ("succeeded", 1)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_launcher_without_standard_streams(spool: Path, tmp_path: Path, closed: str) -> None:
    command = f"echo said > {tmp_path}/out; echo fails >&2; exit 3"
    line = f'"$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *ETTWATCH, "run", "--job", "j", "--", "sh", "-c", command],
        env=environment(spool),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 3
    assert (tmp_path / "out").read_text() == "said\n"
    assert "Traceback" not in done.stderr
    assert [(event.outcome, event.exit_code) for event in ends(spool)] == [("failed", 3)]
    assert {event.kind for event in events(spool)} == {
        *("job_submitted", "attempt_started", "attempt_ended", "job_ended")
    }


def test_a_trainer_that_closes_its_standard_streams(spool: Path) -> None:
    code = """
        import os, sys, time, ettwatch
        os.closerange(0, 3)
        sys.stdout = sys.stderr = None
        rec = ettwatch.init()
        with rec.training(position=0):
            for _ in range(5): time.sleep(0.01); rec.step(1)
        rec.end()
    """
    done = launch((*PYTHON, textwrap.dedent(code)), spool, "--job", "j", env={"ETTWATCH_KAFKA": "127.0.0.1:1"})
    assert done.returncode == 0
    summary = timeline(events(spool)).summary
    assert (summary.status, summary.attempts, summary.flags) == ("succeeded", 1, [])
    assert summary.effective_s > 0.03


SRUN = """#!{python}
import os, subprocess, sys
# What srun does as far as it can be seen: a task for each rank, its exit code the largest of theirs.
tasks = [
    subprocess.Popen(sys.argv[1:], env=os.environ | {{"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "3",
        "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1", "SLURM_NTASKS": "3"}}, start_new_session=True)
    for rank in range(3)
]
sys.exit(max(task.wait() for task in tasks))
"""


def test_around_srun_all_tasks_are_ranks_of_one_attempt_and_requeues_go_on_counting(
    spool: Path, tmp_path: Path
) -> None:
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN.format(python=sys.executable))
    srun.chmod(0o755)
    code = """
        import sys, ettwatch
        rec = ettwatch.init()
        with rec.phase("trainer_init.process_group_init"): pass
        if rec.rank == 2 and rec.attempt == 0: raise MemoryError
        with rec.training(position=0): rec.step(3)
    """
    slurm = {"SLURM_JOB_ID": "77", "SLURM_CLUSTER_NAME": "alps", "SLURM_NNODES": "1", "SLURM_GPUS_ON_NODE": "3"}
    env = {**slurm, "PATH": f"{srun.parent}:{os.environ['PATH']}"}
    codes = []
    for requeue in ("0", "1"):
        done = launch(("srun", *PYTHON, textwrap.dedent(code)), spool, env={**env, "SLURM_RESTART_COUNT": requeue})
        codes.append(done.returncode)
    assert codes == [1, 0]
    found = events(spool)
    assert {event.job for event in found} == {"alps-77"}
    ranks = {(event.attempt, event.rank) for event in found if event.kind == "phase_ended"}
    assert ranks == {(attempt, rank) for attempt in (0, 1) for rank in (0, 1, 2)}
    assert [(event.attempt, event.cause) for event in ends(spool)] == [(0, "host_memory"), (1, "unknown")]
    summary = timeline(found).summary
    assert (summary.status, summary.attempts, summary.nof, summary.gpus) == ("succeeded", 2, 1, 3)


def test_a_kill_for_want_of_memory_on_the_host_is_seen_by_the_control_group(spool: Path, tmp_path: Path) -> None:
    """The counter of a control group that a test can make rise; all else is the real launcher and a real kill."""
    (tmp_path / "memory.events").write_text("oom 0\noom_kill 4\n")
    (tmp_path / "membership").write_text("0::/\n")
    script = f"""
        import functools, sys
        from ettwatch import cgroup, voice
        voice.oom_kills = functools.partial(cgroup.oom_kills, {str(tmp_path)!r}, {str(tmp_path / "membership")!r})
        from ettwatch.cli import main
        main(["run", "--job", "j", *sys.argv[1:]])
    """
    kill = f"printf 'oom 1\\noom_kill 5\\n' > {tmp_path}/memory.events; kill -9 $$"
    done = subprocess.run(
        [*PYTHON, textwrap.dedent(script), "--max-restarts", "1", "--backoff", "0", "--", "sh", "-c", kill],
        env=environment(spool),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 137
    first, second = ends(spool)
    assert (first.outcome, first.cause, first.signal) == ("failed", "host_memory", 9)
    assert second.cause == "unknown"  # the counter did not rise again: that was another's kill


@pytest.mark.slow
@pytest.mark.torch
def test_real_restarts_of_torchrun_are_attempts_and_no_number_comes_twice(spool: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(
        textwrap.dedent(
            """
            import os, time, ettwatch
            rec = ettwatch.init()
            with rec.phase("trainer_init.pre_train"): time.sleep(0.05)
            with rec.training(position=0):
                for _ in range(10): time.sleep(0.02); rec.step(2)
            # None fails before the other has come as far: it would be ended, and have told nothing.
            place = os.path.join(os.path.dirname(__file__), f"{rec.attempt}-")
            open(place + str(rec.rank), "w").close()
            while not os.path.exists(place + str(1 - rec.rank)): time.sleep(0.02)
            # Both ranks of the first start of each launch fail, one a little later.
            time.sleep(0.1 * rec.rank)
            if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": raise ValueError("mine")
            """
        )
    )
    agent = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    agent += ["--max-restarts", "1", "--monitor-interval", "0.1", "--nproc-per-node", "2", str(tmp_path / "train.py")]
    for _ in range(2):
        done = subprocess.run(
            [*ETTWATCH, "run", "--job", "j", "--", *agent],
            env=environment(spool, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    found = events(spool)
    begun = sorted({event.attempt for event in found if isinstance(event, AttemptStarted)})
    assert begun == [0, 1, 2, 3]
    ranks = {(event.attempt, event.rank) for event in found if event.kind == "phase_ended"}
    assert ranks == {(attempt, rank) for attempt in range(4) for rank in (0, 1)}
    told = {event.attempt: (event.outcome, event.cause) for event in ends(spool)}
    assert told == {
        **{0: ("failed", "user_code"), 1: ("succeeded", "unknown")},
        **{2: ("failed", "user_code"), 3: ("succeeded", "unknown")},
    }
    summary = timeline(found).summary
    assert (summary.status, summary.attempts, summary.nof) == ("succeeded", 4, 2)


def test_a_command_that_stops_and_goes_on_is_waited_for(spool: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    process = start(spool, ("sh", "-c", f"echo ready; while [ ! -e {go} ]; do sleep 0.05; done; exit 4"), "--job", "j")
    assert process.stdout is not None
    process.stdout.readline()
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        (command,) = map(int, file.read().split())
    os.kill(command, signal.SIGSTOP)
    go.touch()
    time.sleep(0.7)
    assert process.poll() is None
    os.kill(command, signal.SIGCONT)
    process.communicate(timeout=200)
    assert process.returncode == 4
