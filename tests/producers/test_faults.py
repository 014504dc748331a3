"""Every fault by its name: the training goes on to the same result as without the recorder, and the story is right."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from support.faults import BOUNDARY, DOWN, boundary, is_right, run, script
from support.spooled import environment, events, kinds, timeline, until


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the training prints without the recorder."""
    tmp_path = tmp_path_factory.mktemp("plain")
    plain = run(script(tmp_path), tmp_path / "none", {"ETTWATCH_DISABLED": "1"})
    assert (plain.returncode, plain.stderr) == (0, "")
    assert not (tmp_path / "none").exists()
    return plain.stdout


FULL_AT_WILL = """
            import errno
            real, full = os.write, [False]
            def write(fd, data):
                if full[0]: raise OSError(errno.ENOSPC, "No space left on device")
                return real(fd, data)
            os.write = write
        """

# Whether the thread that sends is in the middle of a look at the spool folder; `looks` tells of those that ended.
LOOKS = """
            from ettwatch.delivery.round import Round
            looks, looking = [], threading.RLock()
            def counted(name, real):
                def look(*args, **more):
                    with looking:
                        try: return real(*args, **more)
                        finally: looks.append(name)
                setattr(Round, name, look)
            counted("send", Round.send), counted("watch", Round.watch)
        """

FAULTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "broker down": {"env": DOWN},
    "bad address": {"env": {**DOWN, "ETTWATCH_KAFKA": "kafka://nonsense:x"}, "says": "is no address of a Kafka broker"},
    "bad security": {"env": {**DOWN, "ETTWATCH_KAFKA_SECURITY": "TLS"}, "says": "is none of PLAINTEXT"},
    "no certificates": {
        "env": {**DOWN, "ETTWATCH_KAFKA_SECURITY": "SSL", "ETTWATCH_KAFKA_CA": "/not/there"},
        "says": "cannot read /not/there",
    },
    "bad settings": {
        "env": {"ETTWATCH_QUEUE_EVENTS": "x", "ETTWATCH_EXIT_S": "-1", "ETTWATCH_SPOOL_MB": "no"},
        "says": "is not a number between",
    },
    "no kafka-python": {
        "env": DOWN,
        "before": "sys.modules['kafka'] = None",
        "says": "cannot use the Kafka brokers",
    },
    "no torch": {"before": "sys.modules['torch'] = None"},
    "interpreter exit with unsent events": {"env": DOWN, "after": "pass"},
    "transport raising": {
        "env": DOWN,
        "before": """
            from ettwatch.delivery.round import Round
            def raises(*args, **more): raise RuntimeError("surprise")
            Round.send = raises
        """,
        "says": "surprise",
    },
    "re-entry from a log handler": {
        "before": """
            import logging
            class Tells(logging.Handler):
                def emit(self, record):
                    import ettwatch
                    with ettwatch.get().phase("wasted_training.logging"): pass
            logging.getLogger("ettwatch").addHandler(Tells())
        """,
        "middle": "rec.step('no count'); time.sleep(0.01)",
        "extra": 2,
        "says": None,
    },
    "threads": {
        "middle": """
            def work(n):
                with ettwatch.get().phase("wasted_training.evaluation"): time.sleep(0.01)
            several = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for each in several: each.start()
            for each in several: each.join()
        """,
        "extra": 16,
    },
    "fork": {
        "env": DOWN,
        "middle": """
            from ettwatch import log
            while "kafka" not in log._said: time.sleep(0.01)    # else the child may say it once more
            pid = os.fork()
            if pid == 0:
                with rec.phase("wasted_training.evaluation"): pass
                os._exit(0)
            os.waitpid(pid, 0)
        """,
        "extra": 2,
    },
    "spawn": {
        "env": DOWN,
        "middle": """
            import multiprocessing
            with multiprocessing.get_context("spawn").Pool(1) as pool: assert pool.map(abs, [-1]) == [1]
        """,
    },
    "exception in the user's block": {
        "middle": """
            try:
                with rec.phase("wasted_training.evaluation"): raise LookupError("mine")
            except LookupError as error:
                assert error.args == ("mine",)
        """,
        "extra": 2,
    },
    "clock set back by an hour": {
        "middle": "time.time = lambda real=time.time: real() - 3600; "
        "time.time_ns = lambda real=time.time_ns: real() - 3600 * 10**9"
    },
    "the disk is full for a while": {
        "env": DOWN,
        "before": FULL_AT_WILL,
        "middle": """
            full[0] = True
            for _ in range(20):
                with rec.phase("wasted_training.evaluation"): pass
            full[0] = False
        """,
        "extra": 40,
        "says": "No space left on device",
    },
    "no more files": {
        "middle": """
            import resource
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
            with rec.phase("wasted_training.evaluation"): pass
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        """,
        "extra": 2,
    },
    "queue full while the disk is full": {
        "env": {"ETTWATCH_QUEUE_EVENTS": "12"},
        "before": FULL_AT_WILL,
        "middle": """
            full[0] = True
            for _ in range(50): rec._outbox.send("heartbeat")
            for _ in range(6):
                with rec.phase("wasted_training.evaluation"): rec._outbox.send("heartbeat")
            assert rec.dropped["queue_full"] >= 50, rec.dropped
            full[0] = False
        """,
        "extra": 12,
        "says": "more events waited in memory",
    },
    "queue full while another thread hangs in a write": {
        "env": {"ETTWATCH_QUEUE_EVENTS": "12"},
        "before": """
            real, hangs, goes_on = os.write, threading.Event(), threading.Event()
            def write(fd, data):
                if threading.current_thread().name == "stuck" and not hangs.is_set():
                    hangs.set()
                    assert goes_on.wait(60)
                return real(fd, data)
            os.write = write
        """,
        "middle": """
            from ettwatch import transport
            transport.LOCK_S = 0.05
            def speak():
                with ettwatch.get().phase("wasted_training.evaluation"): pass
            stuck = threading.Thread(target=speak, name="stuck")
            stuck.start()
            assert hangs.wait(60)
            for _ in range(5):
                with rec.phase("wasted_training.evaluation"): pass
            for _ in range(50): rec._outbox.send("heartbeat")
            assert rec.dropped["queue_full"] >= 40, rec.dropped
            goes_on.set()
            stuck.join()
        """,
        "extra": 12,
        "says": "more events waited in memory",
    },
    "no more threads": {
        "env": DOWN,
        "before": """
            def start(self): raise RuntimeError("can't start new thread")
            threading.Thread.start = start
        """,
        "says": "can't start new thread",
    },
    "fork in the middle of a phase": {
        "env": DOWN,
        "middle": """
            with rec.phase("wasted_training.evaluation"):
                pid = os.fork()
                if pid == 0:
                    with rec.phase("wasted_training.evaluation"): pass
                    sys.exit()
                assert os.waitpid(pid, 0)[1] == 0
        """,
        "extra": 4,
        "says": None,  # each of them, once
    },
    "two recorders in one process": {
        "env": DOWN,
        "middle": """
            from ettwatch.default import open_recorder
            from ettwatch.identity import Given
            other = open_recorder(Given(job="other"), os.environ)
            with rec.phase("wasted_training.evaluation"), other.phase("trainer_init"): pass
            with other.training(position=7): other.step(1)
            other.end("failed", cause="storage")
        """,
        "extra": 2,
        "jobs": {"job", "other"},
    },
    "standard input, output and error are closed": {
        "env": DOWN,
        "before": LOOKS
        + """
            kept = os.dup(1)
            os.close(0), os.close(1), os.close(2)
            sys.stderr = None
        """,
        "middle": """
            while len(looks) < 3: time.sleep(0.01)      # the thread has its lock, and has looked again
            with looking:   # and keeps what it keeps: in a look it has other files open for a moment
                for fd in (0, 1, 2):
                    try:
                        taken = os.readlink(f"/proc/self/fd/{fd}")
                        os.write(fd, b"the trainer's own")
                    except OSError: continue
                    assert "spool" not in taken, taken
            sys.stdout = os.fdopen(kept, "w")
        """,
        "says": "",
    },
    "every descriptor is closed": {
        "env": DOWN,
        "before": LOOKS,
        "middle": """
            import fcntl
            while len(looks) < 3: time.sleep(0.01)      # the thread has its lock, and has said what is wrong
            with looking, rec._outbox._transport._lock:     # and is not in the middle of a look or of a write
                os.closerange(3, 256)
                mine = [open(f"{__file__}.{n}", "w") for n in range(20)]
                before = len(looks)
            while len(looks) == before: time.sleep(0.01)    # and has looked again
            with looking:
                for file in mine:
                    file.write("mine"); file.flush()
                    with open(file.name) as again:
                        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)   # nobody else has locked it
                        assert again.read() == "mine"
        """,
    },
    "what is given cannot be printed": {
        "before": """
            class Bad:
                def __str__(self): raise RuntimeError("no")
                __repr__ = __eq__ = __bool__ = __len__ = __str__
                __hash__ = object.__hash__
        """,
        "middle": """
            with rec.phase(Bad()): pass
            with rec.phase("wasted_training.evaluation", attrs=Bad()) as span:
                span.set(bad=Bad(), deep={Bad(): [Bad()]})
            rec.training_started(step=Bad(), report_every_s=Bad())
            rec.step(Bad())
            loop = rec._loop; loop.mark = (loop.mark[0], loop.mark[1] - 1, loop.mark[2])    # that was no step
        """,
        "after": "rec.end(cause=Bad(), message=Bad())",
        "extra": 3,
        "says": None,
    },
    "signals while it writes": {
        "middle": """
            import signal
            more = [True]
            def handler(*_):
                with ettwatch.get().phase("wasted_training.signal"): pass
                if more[0]: signal.setitimer(signal.ITIMER_REAL, 0.0005)    # a slow machine has no time for more
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.0005)
            for _ in range(400):
                with rec.phase("wasted_training.evaluation"): pass
            more[0] = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        """,
        "extra": None,
    },
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_the_training_is_the_same_and_its_story_whole(tmp_path: Path, spool: Path, name: str, expected: str) -> None:
    fault = FAULTS[name]
    parts = {part: fault[part] for part in ("before", "middle", "after") if part in fault}
    done = run(script(tmp_path, **parts), spool, fault.get("env"))
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
    assert "Traceback" not in done.stderr
    says = fault.get("says", "cannot use the Kafka brokers" if "env" in fault else "")
    if says == "":
        assert done.stderr == ""
    elif says is not None:
        assert done.stderr.count(says) >= 1
        assert all(done.stderr.count(line) == 1 for line in done.stderr.splitlines())
    found = events(spool)
    assert {event.job for event in found} == fault.get("jobs", {"job"})
    found = [event for event in found if event.job == "job"]
    story = boundary(found)
    extra = fault.get("extra", 0)
    if extra is None:
        assert [story.count(kind) for kind in ("attempt_ended", "job_ended")] == [1, 1]
        assert story.count("phase_started") == story.count("phase_ended") > 400
    else:
        assert len(story) == len(BOUNDARY) + extra
        if not extra:
            assert story == BOUNDARY
    is_right(found)


@pytest.mark.parametrize(
    "job",
    [
        *["two words", "emoji 😀🚀", "x" * 1024, "é" * 512, "😀" * 256, "👩🏽‍🚀" * 200, "a/b\\c:d*e", ".hidden", ".."],
        *["tab\tand\nnewline", "-", "%s%n{}", "\u202e"],
    ],
)
def test_any_name_of_a_job(tmp_path: Path, spool: Path, job: str, expected: str) -> None:
    done = run(script(tmp_path), spool, {"TRAIN_JOB": job, **DOWN})
    assert (done.returncode, done.stdout) == (0, expected)
    found = events(spool)
    assert {event.job for event in found} == {job}
    assert boundary(found) == BOUNDARY
    is_right(found)


@pytest.mark.parametrize("how", ["os._exit(7)", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 15)"])
def test_what_was_told_before_a_sudden_end_is_there(tmp_path: Path, spool: Path, how: str, expected: str) -> None:
    done = run(script(tmp_path, middle=how), spool, DOWN)
    assert done.returncode in (7, -9, -15)
    found = events(spool)
    assert boundary(found) == BOUNDARY[:5]
    after = run(script(tmp_path), spool, DOWN)
    assert (after.returncode, after.stdout) == (0, expected)
    found = events(spool)
    summary = timeline(found).summary
    # Started by hand again it is the next attempt of the job, and the first has failed.
    assert (summary.status, summary.attempts, summary.nof) == ("succeeded", 2, 1)
    assert "zombie" not in summary.flags


def test_a_stopped_trainer_that_goes_on(tmp_path: Path, spool: Path, expected: str) -> None:
    process = subprocess.Popen(
        [sys.executable, str(script(tmp_path, middle="print('here', flush=True); sys.stdin.readline()"))],
        env=environment(spool, DOWN),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGSTOP)
    until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    time.sleep(1)
    process.send_signal(signal.SIGCONT)
    assert process.communicate("\n", timeout=120)[0] == expected
    found = events(spool)
    assert boundary(found) == BOUNDARY
    # While it stood still its position did: three times what it had declared as its longest silence is no hang.
    assert timeline(found).summary.e2e_s > 1.2
    is_right(found)


def test_a_full_queue_drops_progress_first_and_tells_how_much(tmp_path: Path, spool: Path) -> None:
    code = """
        rec = ettwatch.init(job="job")
        rec.training_started(position=0)
        full[0] = True
        for n in range(40):
            rec._reporter._tell((n, n, 0), n)
        for n in range(9):
            rec.phase("wasted_training.evaluation").begin()
        full[0] = False
        print(rec.dropped)
        rec.end()
    """
    path = tmp_path / "train.py"
    path.write_text("import os, ettwatch\n" + textwrap.dedent(FULL_AT_WILL) + textwrap.dedent(code))
    done = run(path, spool, {"ETTWATCH_QUEUE_EVENTS": "10"})
    assert (done.returncode, done.stdout) == (0, "{'queue_full': 39}\n")
    assert "more events waited in memory" in done.stderr
    found = events(spool)
    assert kinds(found).count("phase_started") == 9
    assert kinds(found).count("attempt_ended") == 1


def test_sixty_four_ranks_on_one_host(tmp_path: Path, spool: Path) -> None:
    code = """
        import os, time, ettwatch
        from ettwatch import log
        rank, (gate, opens) = 0, os.pipe()
        for n in range(1, 64):
            if os.fork() == 0:
                rank = n
                break
        if rank:
            os.close(opens)
            os.read(gate, 1)
        rec = ettwatch.init(job="wide", rank=rank, attempt=0)
        if rank == 0:
            while "kafka" not in log._said: time.sleep(0.01)    # it is the one to send for all
            os.close(opens)
        with rec.phase("trainer_init.process_group_init"): pass
        if rank == 0:
            with rec.training(position=0):
                rec.step(64)
                rec.step(64)
            for _ in range(63): assert os.wait()[1] == 0
            print("trained", flush=True)
        rec.end()
        if rank: os._exit(0)
    """
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(code))
    done = run(path, spool, DOWN)
    assert (done.returncode, done.stdout) == (0, "trained\n")
    found = events(spool)
    assert sorted(event.rank for event in found if event.kind == "phase_ended") == list(range(64))
    assert sum(span.ranks for span in timeline(found).spans) == 64
    summary = timeline(found).summary
    assert (summary.status, summary.attempts, summary.nof, summary.flags) == ("succeeded", 1, 0, [])
    assert kinds(found).count("training_ended") == kinds(found).count("attempt_ended") == 1
    # One of them knocked at the brokers' door for all: the others left it to that one.
    assert done.stderr.count("cannot use the Kafka brokers") == 1


def test_ten_thousand_phases_with_the_broker_down_leak_nothing(tmp_path: Path, spool: Path, expected: str) -> None:
    leak = """
        def kib():
            with open("/proc/self/statm") as file: return int(file.read().split()[1]) * 4
        def phases(count):
            for n in range(count):
                with rec.phase("wasted_training.evaluation") as span: span.set(n=n)
        from ettwatch import log
        def now(): return threading.active_count(), len(os.listdir("/proc/self/fd")), kib()
        phases(500)
        while "kafka" not in log._said: time.sleep(0.01)
        time.sleep(1.2)  # the thread has looked, and imported what it needs
        before = now()
        phases(10_000)
        for _ in range(30):  # it may be looking again
            time.sleep(1.2)
            after = now()
            if after[0] == before[0] and after[1] <= before[1] + 1: break
        assert after[0] == before[0], (before, after)
        assert after[1] <= before[1] + 1, (before, after)
        assert after[2] - before[2] < 8192, (before, after)
    """
    done = run(script(tmp_path, middle=leak), spool, DOWN)
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
    found = events(spool)
    assert len(boundary(found)) == len(BOUNDARY) + 2 * 10_500
    summary = timeline(found).summary
    assert (summary.status, summary.attempts, summary.flags) == ("succeeded", 1, [])
    assert summary.stages["wasted_training.evaluation"] < 100
    assert abs(sum(summary.components.values()) + summary.effective_s - summary.e2e_s) < 1e-6


@pytest.mark.torch
def test_inside_torch_compile(tmp_path: Path, spool: Path) -> None:
    pytest.importorskip("torch")
    code = """
        import sys, torch, ettwatch
        from torch._dynamo.utils import counters
        rec = ettwatch.init(job="job")

        @ettwatch.phase("wasted_training.evaluation")
        def helper(x): return x + 1

        def step(x):
            with rec.phase("wasted_training.evaluation") as span:
                span.set(n=1)
                y = x * 2
            with ettwatch.phase("wasted_training.evaluation"): y = y + 1
            with rec.checkpoint(): y = y + 1
            rec.step(1)
            return helper(y)

        compiled = torch.compile(step, backend="eager", fullgraph=True)
        with rec.training(position=0):
            for n in range(20):
                assert compiled(torch.full((2,), float(n)))[0] == 2 * n + 3
                rec.step(4)
        print(counters["stats"]["unique_graphs"], dict(counters["graph_break"]))
        rec.end()
    """
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(code))
    done = run(path, spool)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 {}\n", "")
    without = run(path, tmp_path / "none", {"ETTWATCH_DISABLED": "1"})
    assert (without.stdout, (tmp_path / "none").exists()) == (done.stdout, False)
    found = events(spool)
    summary = timeline(found).summary
    assert (summary.status, summary.attempts, summary.flags) == ("succeeded", 1, [])
    assert kinds(found).count("phase_started") == 0
    (ended,) = (event for event in found if event.kind == "training_ended")
    assert getattr(ended, "position", None) == 80


# A stand-in for a GPU: work is queued, and whoever asks for a result or for the end of it waits for all.
DEVICE = """
        class Stream:
            queued, waits = 0, 0
            def launch(self):
                self.queued += 1
                return Result(self)
            def synchronize(self):
                Stream.waits += 1
                self.queued = 0

        class Result:
            '''As a tensor on a device: every way to look at its value waits.'''
            def __init__(self, stream): self._stream = stream
            def _wait(self, *args):
                self._stream.synchronize()
                return 1
            __int__ = __index__ = __float__ = __bool__ = item = __len__ = _wait
            def __repr__(self):
                self._stream.synchronize()
                return "tensor"
            __str__ = __repr__
            def __eq__(self, other): return self._wait()
            def __lt__(self, other): return self._wait()
            __gt__ = __le__ = __ge__ = __lt__
            __hash__ = object.__hash__
    """


def test_no_step_waits_for_its_device(tmp_path: Path, spool: Path) -> None:
    code = textwrap.dedent(DEVICE) + textwrap.dedent("""
        import ettwatch
        stream = Stream()
        rec = ettwatch.init(job="job")
        with rec.training(position=0, report_every_s=0.1):
            for batch in rec.track([stream.launch() for _ in range(30)]):
                with rec.phase("wasted_training.evaluation", attrs={"loss": stream.launch()}) as span:
                    span.set(accuracy=stream.launch(), several=[stream.launch()], by={"a": stream.launch()})
                with rec.checkpoint() as saved: pass
                saved.durable(bytes=stream.launch())
                rec.step(stream.launch())     # not read: it is no number of Python's
                rec.step(32)
        try:
            with rec.phase("wasted_training.evaluation"): raise ValueError(stream.launch())
        except ValueError as error:
            rec.failed(error)
        rec.end()
        print(Stream.waits, stream.queued > 100)
    """)
    path = tmp_path / "train.py"
    path.write_text(code)
    done = run(path, spool)
    assert (done.returncode, done.stdout) == (0, "0 True\n"), done.stderr
    (ended,) = (event for event in events(spool) if event.kind == "training_ended")
    assert getattr(ended, "position", None) == 30 * 32


def test_the_thread_is_idle_while_the_trainer_works(tmp_path: Path, spool: Path) -> None:
    code = """
        import time, ettwatch
        rec = ettwatch.init(job="job")
        rec.training_started(position=0)
        from ettwatch import log
        while "kafka" not in log._said: time.sleep(0.01)    # it has imported what it needs
        used = []
        for _ in range(5):  # on a machine that is busy, the same work takes more of its time
            before = time.process_time()
            time.sleep(3)
            used.append(time.process_time() - before)
            if used[-1] < 0.06: break
        print(min(used))
    """
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(code))
    done = run(path, spool, DOWN)
    assert done.returncode == 0
    assert float(done.stdout) < 0.06  # 2 % of a core, with brokers that do not answer


def test_the_process_id_of_a_file_is_that_of_its_writer(tmp_path: Path, spool: Path) -> None:
    run(script(tmp_path), spool, DOWN)
    assert all(int(path.name.split(".")[2]) != os.getpid() for path in spool.glob("*.jsonl"))
