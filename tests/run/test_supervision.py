"""`ettwatch run` around real processes: what fails, what hangs, what is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from ettwatch_schemas import AttemptEnded, AttemptStarted
from support.spooled import ETTWATCH, environment, events, launch, timeline, until

PYTHON = (sys.executable, "-c")


def ends(spool: Path) -> list[AttemptEnded]:
    return [event for event in events(spool) if isinstance(event, AttemptEnded) and event.source == "launcher"]


def start(
    spool: Path, code: str, *options: str, env: Mapping[str, str] | None = None, stdin: int | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*ETTWATCH, "run", *options, "--", *PYTHON, textwrap.dedent(code)],
        env=environment(spool, env),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


OOM = "class OutOfMemoryError(RuntimeError): pass\nOutOfMemoryError.__module__ = 'torch'\n"
OOM += "raise OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB')"


@pytest.mark.parametrize("where", ["pipe", "file", "appended file", "same pipe"])
def test_a_message_of_a_gpu_out_of_memory_is_the_cause(spool: Path, tmp_path: Path, where: str) -> None:
    log = tmp_path / "log"
    log.write_text("torch.OutOfMemoryError: of an earlier run\n" if where == "appended file" else "")
    failing = OOM if where != "appended file" else "raise ValueError('mine')"
    code = f"print('out', flush=True)\n{failing}"
    with log.open("ab") as file:
        done = subprocess.run(
            [*ETTWATCH, "run", "--", *PYTHON, code],
            env=environment(spool),
            stdout=subprocess.PIPE,
            stderr={"pipe": subprocess.PIPE, "same pipe": subprocess.STDOUT}.get(where, file),
            check=False,
            timeout=120,
        )
    assert done.returncode == 1
    (over,) = ends(spool)
    said = {"pipe": done.stderr, "same pipe": done.stdout}.get(where) or log.read_bytes()
    if where == "appended file":
        assert (over.cause, over.message) == ("user_code", "ValueError: mine")
    else:
        assert over.cause == "gpu_memory"
        assert over.message is not None
        assert "Tried to allocate 2.00 GiB" in over.message
        assert b"torch.OutOfMemoryError" in said
    if where == "same pipe":
        assert said.startswith(b"out\nTraceback")


def test_standard_error_passes_through_byte_for_byte(spool: Path) -> None:
    code = "import os\nfor n in range(300): os.write(2, bytes([n % 256]) * 10_007)"
    done = subprocess.run(
        [*ETTWATCH, "run", "--", *PYTHON, code], env=environment(spool), capture_output=True, check=False, timeout=120
    )
    assert done.stderr == b"".join(bytes([n % 256]) * 10_007 for n in range(300))


def test_a_reader_that_is_killed_is_replaced(spool: Path) -> None:
    code = """
        import os, sys, time
        print("ready", flush=True)
        for n in range(60):
            os.write(2, b"x" * 100_000)
            time.sleep(0.05)
    """
    process = start(spool, code)
    assert process.stdout is not None
    process.stdout.readline()
    readers = [
        int(pid)
        for pid in os.listdir("/proc")
        if pid.isdecimal() and relay_of(int(pid)) and str(spool.parent) in environ(int(pid))
    ]
    assert len(readers) == 1
    os.kill(readers[0], signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert len(err) > 1_000_000


def relay_of(pid: int) -> bool:
    try:
        return "ettwatch/relay.py" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def environ(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text()
    except OSError:
        return ""


def test_standard_error_can_be_left_alone(spool: Path) -> None:
    code = "import os; print(os.readlink('/proc/self/fd/2'))"
    watched, passed = (launch((*PYTHON, code), spool, "--stderr", how) for how in ("watch", "pass"))
    assert watched.stdout != passed.stdout
    launch((*PYTHON, OOM), spool, "--job", "j", "--stderr", "pass")
    assert ends(spool)[-1].cause == "unknown"


def test_an_error_file_of_torchelastic_is_read(spool: Path) -> None:
    code = """
        import json, os
        told = {"message": {"message": "RuntimeError: CUDA out of memory"}}
        json.dump(told, open(os.environ["TORCHELASTIC_ERROR_FILE"], "w"))
        os._exit(5)
    """
    launch((*PYTHON, textwrap.dedent(code)), spool)
    assert (ends(spool)[0].cause, ends(spool)[0].message) == ("gpu_memory", "RuntimeError: CUDA out of memory")


STUCK = """
    import os, signal, sys, time, ettwatch
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    rec = ettwatch.init()
    if STARTS:
        rec.training_started(position=100 * rec.attempt)
        for _ in range(4):
            time.sleep(0.1)
            rec.step(25)
    if rec.attempt == 0:
        time.sleep(600)
"""


@pytest.mark.parametrize(("starts", "option"), [("True", "--hang-after"), ("False", "--start-within")])
def test_what_hangs_is_ended_and_started_again(spool: Path, starts: str, option: str) -> None:
    code = textwrap.dedent(STUCK).replace("STARTS", starts)
    command: tuple[str, ...] = (*PYTHON, code)
    if starts == "False":  # to start a Python may take longer than is waited for: the second attempt is over without
        command = ("sh", "-c", '[ "$ETTWATCH_ATTEMPT" != 0 ] || exec "$@"', "sh", *command)
    done = launch(
        command,
        spool,
        *("--on-hang", "kill", option, "6", "--grace", "0.5", "--max-restarts", "1", "--backoff", "0"),
        env={"ETTWATCH_REPORT_EVERY_S": "0.5"},
    )
    assert done.returncode == 0, done.stderr
    assert "it hangs: no " in done.stderr
    first, second = ends(spool)
    assert (first.outcome, first.cause, second.outcome) == ("failed", "timeout", "succeeded")
    assert first.message is not None
    assert first.message.startswith("no progress for 6 s after step 4" if starts == "True" else "no step within 6 s")


def test_a_hang_is_only_told_by_default(spool: Path) -> None:
    code = """
        import sys, ettwatch
        rec = ettwatch.init()
        rec.training_started(position=0)
        rec.step(1); sys.stdin.readline(); rec.step(1); sys.stdin.readline()
    """
    process = start(spool, code, "--hang-after", "1", env={"ETTWATCH_REPORT_EVERY_S": "0.5"}, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    assert "it hangs" in process.stderr.readline()
    process.stdin.write("step\n")
    process.stdin.flush()
    assert "training moves again" in process.stderr.readline()
    assert "it hangs" in process.stderr.readline()
    _, err = process.communicate("end\n", timeout=120)
    assert (process.returncode, err) == (0, "")
    assert ends(spool)[0].outcome == "succeeded"


def test_a_command_that_ignores_its_end_is_killed_when_asked(spool: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    process = start(spool, code, "--kill-after", "0.3")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 137
    assert "it is killed" in err
    assert (ends(spool)[-1].outcome, ends(spool)[-1].signal) == ("preempted", 9)


def test_ranks_whose_agent_was_killed_are_ended_with_it(spool: Path) -> None:
    agent = """
        import os, signal, subprocess, sys, time
        env = os.environ | {"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": "1"}
        code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
        rank = subprocess.Popen([sys.executable, "-c", code], env=env, start_new_session=True, stdout=subprocess.PIPE)
        rank.stdout.readline()
        print(rank.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    process = start(spool, agent, "--grace", "0.3")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 137
    assert "ranks that the command left behind were ended" in err
    until(
        lambda: not Path(f"/proc/{int(out)}").exists() or "Z" in Path(f"/proc/{int(out)}/stat").read_text().split()[2]
    )


def test_restarts_of_ranks_that_tell_nothing_are_attempts(spool: Path) -> None:
    # Each rank lives until its attempt is told of: how soon that is depends on how much runs on the machine.
    agent = """
        import os, subprocess, sys, time
        rank = '''
        import glob, os, sys, time
        print(time.time(), flush=True)
        def told():
            files = [open(path).read() for path in glob.glob(os.environ["ETTWATCH_SPOOL"] + "/*.jsonl")]
            return sum(text.count('"attempt_started"') for text in files)
        while told() <= int(os.environ["TORCHELASTIC_RESTART_COUNT"]): time.sleep(0.05)
        time.sleep(0.1)
        '''
        for restart in "012":
            env = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "8", "TORCHELASTIC_RESTART_COUNT": restart}
            print(time.time(), flush=True)
            subprocess.run([sys.executable, "-c", rank], env=os.environ | env)
    """
    done = launch((*PYTHON, textwrap.dedent(agent)), spool, "--job", "j", "--gpus", "8")
    assert done.returncode == 0, done.stderr
    begun = [event for event in events(spool) if isinstance(event, AttemptStarted)]
    assert [(event.attempt, event.world_size, event.gpus) for event in begun] == [(0, None, 8), (1, 8, 8), (2, 8, 8)]
    assert [(event.attempt, event.outcome) for event in ends(spool)] == [(0, "failed"), (1, "failed"), (2, "succeeded")]
    # One ends where the next begins, and that is when its rank was started.
    assert [event.ts for event in ends(spool)][:2] == [event.ts for event in begun][1:]
    _, _, *times = map(float, done.stdout.split())
    for event, before, after in zip(begun[1:], times[::2], times[1::2], strict=True):
        assert before - 0.1 <= event.ts / 1e6 <= after + 0.1
    summary = timeline(events(spool)).summary
    assert (summary.attempts, summary.nof, summary.flags) == (3, 2, [])
    assert launch(("true",), spool, "--job", "j").returncode == 0
    assert [event.attempt for event in events(spool) if isinstance(event, AttemptStarted)][-1] == 3


def test_signs_of_life_come_from_the_start_on(spool: Path) -> None:
    wait = f"while [ $(cat {spool}/*.jsonl | grep -c heartbeat) -lt 3 ]; do sleep 0.1; done"
    launch(("sh", "-c", wait), spool, env={"ETTWATCH_HEARTBEAT_EVERY_S": "0.3"})
    assert len(events(spool, "heartbeat")) >= 3
