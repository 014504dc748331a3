import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from ettwatch_schemas import AttemptEnded, AttemptStarted, Event, JobEnded, JobSubmitted, PhaseStarted
from support.spooled import Recording, environment, events, kinds, python, timeline, until


def ended(found: list[Event]) -> AttemptEnded:
    (last,) = [event for event in found if isinstance(event, AttemptEnded)]
    return last


def test_without_a_launcher_rank_0_tells_everything(recording: Recording) -> None:
    env = {"ETTWATCH_TEAM": "ads", "ETTWATCH_LABELS": "a=b", "WORLD_SIZE": "2", "RANK": "0", "ETTWATCH_CLUSTER": "c"}
    rec = recording.start({**env, "ETTWATCH_MODEL": "m", "ETTWATCH_GPUS": "16"})
    assert (rec.enabled, rec.job, rec.attempt, rec.rank) == (True, "job", 0, 0)
    rec.end()
    assert not rec.enabled
    submitted, started, over, job_ended = recording.events()
    assert isinstance(submitted, JobSubmitted)
    assert (submitted.team, submitted.model, submitted.cluster, submitted.gpus) == ("ads", "m", "c", 16)
    assert (submitted.labels, submitted.attempt, submitted.source) == ({"a": "b"}, None, "trainer")
    assert isinstance(started, AttemptStarted)
    assert (started.gpus, started.world_size, started.trigger, started.attempt) == (16, 2, "initial", 0)
    assert isinstance(over, AttemptEnded)
    assert over.outcome == "succeeded"
    assert isinstance(job_ended, JobEnded)
    assert job_ended.outcome == "succeeded"


def test_the_other_ranks_tell_of_their_phases_and_failures_only(recording: Recording) -> None:
    good, bad = recording.start({"RANK": "1"}), recording.start({"RANK": "2"})
    with good.phase("trainer_init"):
        pass
    good.end()
    bad.failed("disk on fire", cause="hardware")
    assert kinds(recording.events()) == ["phase_started", "phase_ended", "attempt_ended"]
    over = ended(recording.events())
    assert (over.rank, over.outcome, over.cause, over.message) == (2, "failed", "hardware", "disk on fire")


def test_the_end_is_told_once(recording: Recording, caplog: pytest.LogCaptureFixture) -> None:
    rec = recording.start()
    rec.failed(ValueError("first"))
    rec.end("succeeded")
    rec.failed("again")
    with rec.phase("shutdown"):
        rec.step(1)
    assert ended(recording.events()).message == "ValueError: first"
    assert kinds(recording.events()) == ["job_submitted", "attempt_started", "attempt_ended", "job_ended"]


@pytest.mark.parametrize(("outcome", "told"), [("preempted", None), ("cancelled", "cancelled"), ("nonsense", "failed")])
def test_outcomes(recording: Recording, outcome: str, told: str | None) -> None:
    recording.start().end(outcome, cause="maintenance", message="drained")
    over = ended(recording.events())
    assert (over.outcome, over.cause, over.message) == (told or outcome, "maintenance", "drained")
    assert [getattr(event, "outcome", None) for event in recording.events("job_ended")] == ([told] if told else [])


class OutOfMemoryError(RuntimeError):
    """Named as that of torch."""


class DistNetworkError(RuntimeError):
    """Named as that of torch."""


class Loud(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "cause", "message"),
    [
        (ValueError("x"), "user_code", "ValueError: x"),
        (KeyError(), "user_code", "KeyError"),
        (
            OutOfMemoryError("CUDA out of memory. Tried to"),
            "gpu_memory",
            "OutOfMemoryError: CUDA out of memory. Tried to",
        ),
        (RuntimeError("CUDA error: out of memory"), "gpu_memory", "RuntimeError: CUDA error: out of memory"),
        (
            RuntimeError("CUDA error: uncorrectable ECC error"),
            "hardware",
            "RuntimeError: CUDA error: uncorrectable ECC error",
        ),
        (RuntimeError("a bug"), "user_code", "RuntimeError: a bug"),
        (MemoryError(), "host_memory", "MemoryError"),
        (DistNetworkError("peer"), "network", "DistNetworkError: peer"),
        (ConnectionResetError(104, "reset"), "network", "ConnectionResetError: [Errno 104] reset"),
        (TimeoutError("late"), "timeout", "TimeoutError: late"),
        (OSError(28, "No space left on device"), "storage", "OSError: [Errno 28] No space left on device"),
        (FileNotFoundError(2, "gone"), "user_code", "FileNotFoundError: [Errno 2] gone"),
        (ValueError(object()), "user_code", "ValueError"),
        (Loud("x"), "user_code", "Loud"),
        (ValueError("y" * 5000), "user_code", ("ValueError: " + "y" * 5000)[:2000]),
    ],
)
def test_causes_of_exceptions(recording: Recording, error: BaseException, cause: str, message: str) -> None:
    recording.start().failed(error)
    over = ended(recording.events())
    assert (over.outcome, over.cause, over.message) == ("failed", cause, message)


def test_a_cause_that_is_none_is_warned_of(recording: Recording, caplog: pytest.LogCaptureFixture) -> None:
    recording.start().failed(MemoryError(), cause="gremlins")
    assert ended(recording.events()).cause == "host_memory"
    assert "'gremlins' is no cause" in caplog.text


@pytest.mark.parametrize(
    ("ending", "code", "outcome", "cause", "exit_code"),
    [
        ("", 0, "succeeded", "unknown", None),
        ("rec.end('cancelled')", 0, "cancelled", "unknown", None),
        ("raise ValueError('mine')", 1, "failed", "user_code", None),
        ("raise KeyboardInterrupt", -signal.SIGINT, "cancelled", "unknown", None),
        ("with rec: sys.exit(3)", 3, "failed", "unknown", 3),
        ("with rec: sys.exit()", 0, "succeeded", "unknown", None),
        ("with rec: sys.exit('no')", 1, "failed", "unknown", 1),
        ("with rec: raise MemoryError", 1, "failed", "host_memory", None),
        ("with rec: pass", 0, "succeeded", "unknown", None),
        ("sys.exit(3)", 3, "succeeded", "unknown", None),  # cannot be seen from inside: docs/instrument.md says so
    ],
)
def test_how_a_process_ends_is_told(
    spool: Path, ending: str, code: int, outcome: str, cause: str, exit_code: int | None
) -> None:
    done = python(f"import sys, ettwatch; rec = ettwatch.init(job='job')\n{ending}", spool)
    assert done.returncode == code
    over = ended(events(spool))
    assert (over.outcome, over.cause, over.exit_code) == (outcome, cause, exit_code)
    assert timeline(events(spool)).summary.status == outcome


def test_the_users_own_exception_hook_still_runs_and_sees_what_it_would(spool: Path) -> None:
    code = """
        import sys, ettwatch
        sys.excepthook = lambda kind, error, traceback: print("hook", kind.__name__, error, traceback is not None)
        ettwatch.init(job="job")
        raise ValueError("mine")
    """
    done = python(code, spool)
    assert (done.returncode, done.stdout, done.stderr) == (1, "hook ValueError mine True\n", "")
    assert ended(events(spool)).message == "ValueError: mine"


def test_after_a_kill_everything_said_is_there(spool: Path) -> None:
    code = """
        import os, signal, ettwatch
        rec = ettwatch.init(job="job")
        with rec.phase("trainer_init.a"): pass
        with rec.phase("trainer_init.b"):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert python(code, spool).returncode == -signal.SIGKILL
    assert kinds(events(spool)) == ["job_submitted", "attempt_started", "phase_started", "phase_ended", "phase_started"]


@pytest.mark.parametrize("how", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_a_process_that_ends_without_goodbye_says_nothing_of_its_end(spool: Path, how: str) -> None:
    python(f"import os, signal, ettwatch\nettwatch.init(job='job')\n{how}", spool)
    assert kinds(events(spool)) == ["job_submitted", "attempt_started"]


def test_a_stopped_process_goes_on_as_if_nothing_had_been(spool: Path) -> None:
    code = """
        import sys, ettwatch
        rec = ettwatch.init(job="job")
        with rec.phase("trainer_init.stopped"):
            print("here", flush=True)
            sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment(spool),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    process.send_signal(signal.SIGCONT)
    process.stdin.close()
    assert process.wait(120) == 0
    process.stdout.close()
    (span,) = timeline(events(spool)).spans
    assert span.end - span.start >= 200_000


FORK = """
    import os, sys, threading, ettwatch
    rec = ettwatch.init(job="job")
    rec.training_started()
    with rec.phase("wasted_training.outer"):
        pid = os.fork()
        if pid == 0:
            with rec.phase("wasted_training.child"):
                for _ in range(3): rec.step(1)
            assert threading.active_count() == 1
        else:
            assert os.waitpid(pid, 0)[1] == 0
            with rec.phase("wasted_training.parent"): pass
    if pid == 0:
        sys.exit()
    rec.training_ended()
"""


def test_a_forked_child_has_a_file_and_ids_of_its_own_and_does_not_end_the_attempt(spool: Path) -> None:
    done = python(FORK, spool, {"PYTHONWARNINGS": "ignore::DeprecationWarning"})
    assert (done.returncode, done.stderr) == (0, "")
    found = events(spool)
    assert len(list(spool.glob("*.jsonl"))) == 2
    assert len({event.id.partition("-")[0] for event in found}) == 2
    assert kinds(found).count("attempt_ended") == kinds(found).count("job_ended") == 1
    starts = {event.phase: event for event in found if isinstance(event, PhaseStarted)}
    assert starts["wasted_training.child"].parent == starts["wasted_training.outer"].span
    ends = [getattr(event, "span", None) for event in found if event.kind == "phase_ended"]
    assert sorted(ends, key=str) == sorted((event.span for event in starts.values()), key=str)


def test_a_forked_child_lets_its_parents_file_be_finished(spool: Path) -> None:
    code = """
        import os, time, ettwatch
        ettwatch.init(job="job").phase("trainer_init").__enter__()
        if os.fork() == 0:
            os.setsid()
            time.sleep(120)
            os._exit(0)
        os._exit(0)
    """
    started = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], env=environment(spool), timeout=60, check=False
    )
    assert started.returncode == 0
    (path,) = spool.glob("*.jsonl")

    def is_free() -> bool:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True

    until(is_free)  # the child, which lives on, does not hold it once it has begun to run


def test_workers_of_both_start_methods_do_not_disturb(spool: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, warnings, ettwatch
            warnings.simplefilter("ignore")

            def work(n):
                with ettwatch.get().phase(f"trainer_init.worker{n}"):
                    return n * n

            if __name__ == "__main__":
                with ettwatch.init(job="job"):
                    for method in ("fork", "spawn"):
                        with multiprocessing.get_context(method).Pool(2) as pool:
                            assert pool.map(work, range(4)) == [0, 1, 4, 9]
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script)], env=environment(spool), capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = events(spool)
    phases = sorted(event.phase for event in found if isinstance(event, PhaseStarted))
    assert phases == [f"trainer_init.worker{n}" for n in range(4)]  # those of fork: a spawned one has not called init
    assert kinds(found).count("attempt_ended") == 1


def test_torchelastic_restarts_are_attempts_of_one_job(spool: Path) -> None:
    env = {"TORCHELASTIC_RUN_ID": "run", "TORCHELASTIC_MAX_RESTARTS": "1", "RANK": "0", "WORLD_SIZE": "1"}
    failing = "import ettwatch; ettwatch.init(); raise ValueError"
    for restart, code in enumerate((failing, failing)):
        python(code, spool, {**env, "TORCHELASTIC_RESTART_COUNT": str(restart)})
    found = events(spool)
    starts = [event for event in found if isinstance(event, AttemptStarted)]
    assert [(event.job, event.attempt, event.trigger) for event in starts] == [
        ("run", 0, "initial"),
        ("run", 1, "failure"),
    ]
    assert kinds(found).count("job_ended") == 1  # the first failure was not the end
    assert timeline(found).summary.nof == 2


def test_sixty_four_ranks_on_one_host_keep_apart(spool: Path) -> None:
    code = """
        import os, ettwatch
        rank = 0
        for n in range(1, 64):
            if os.fork() == 0:
                rank = n
                break
        with ettwatch.init(rank=rank) as rec, rec.phase("trainer_init.all"): pass
        if rank == 0:
            while True:
                try: os.wait()
                except ChildProcessError: break
        else:
            os._exit(0)
    """
    done = python(code, spool, {"ETTWATCH_LAUNCHER": "1", "ETTWATCH_JOB": "job", "ETTWATCH_ATTEMPT": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    found = events(spool)
    assert sorted(event.rank for event in found if event.kind == "phase_ended") == list(range(64))
    assert len(list(spool.iterdir())) == 64
    assert sum(span.ranks for span in timeline(found).spans) == 64


def test_the_thread_ends_with_the_attempt(recording: Recording) -> None:
    others = set(threading.enumerate())

    def pulses() -> int:
        return sum(thread.name == "ettwatch-pulse" for thread in set(threading.enumerate()) - others)

    hook = sys.excepthook
    recs = [recording.start(), recording.start({"RANK": "1"})]
    assert pulses() == 1
    for rec in reversed(recs):
        rec.end()
    until(lambda: pulses() == 0)
    assert sys.excepthook is hook


def test_it_ends_with_the_process_that_began_it(recording: Recording) -> None:
    rec = recording.start()
    pid = os.getpid()
    rec._life._pid = pid + 1
    rec.end()
    assert rec.enabled
    rec._life._pid = pid
    rec.end()
    assert not rec.enabled
