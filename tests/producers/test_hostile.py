"""A trainer and a world that mean the recorder no good: it does not block, slow, crash or outlive the trainer."""

import errno
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from ettwatch import log
from ettwatch.delivery import round as round_module
from ettwatch.delivery.election import Election
from ettwatch.delivery.record import Record
from ettwatch.delivery.round import Round
from ettwatch.settings import Brokers, read
from ettwatch.transport import FileTransport
from ettwatch_schemas import decode_event
from support.faults import BOUNDARY, DOWN, boundary, run, script
from support.spooled import Recording, environment, events, kinds, lines, timeline, until

Answer = str


class Server:
    """What listens on a port and is no good broker."""

    def __init__(self, answers: Answer) -> None:
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._kept: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                taken, _ = self._listener.accept()
                self._kept.append(taken)
                if self._answers == "garbage":
                    taken.sendall(os.urandom(4096))
                elif self._answers == "hangs up":
                    taken.close()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)
        for each in self._kept:
            each.close()


@pytest.fixture(params=["nothing", "garbage", "hangs up"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    found = Server(request.param)
    yield found
    found.close()


@pytest.mark.parametrize("ends", ["rec.end()", "pass"], ids=["end", "exit"])
def test_a_broker_that_takes_connections_and_never_answers(
    tmp_path: Path, spool: Path, server: Server, ends: str
) -> None:
    slowest = """
        def usual():
            taken = []
            for _ in range(101):
                began = time.perf_counter()
                with rec.phase("wasted_training.evaluation"): pass
                taken.append(time.perf_counter() - began)
                time.sleep(0.005)
            return sorted(taken)[-15]
        print(usual(), flush=True)     # the thread is in the middle of connecting
    """
    path = script(tmp_path, middle=slowest, after=f"print(time.monotonic(), flush=True)\n    {ends}")
    took = []
    for number in range(6):  # the machine may be busy with something else
        folder = spool / str(number)
        done = run(path, folder, {"ETTWATCH_KAFKA": server.address})
        over = time.monotonic()
        assert done.returncode == 0, done.stderr
        slow, _, ends_at, *_ = done.stdout.split("\n")
        assert "Traceback" not in done.stderr
        found = events(folder)
        assert len(boundary(found)) == len(BOUNDARY) + 202
        summary = timeline(found).summary
        assert (summary.status, summary.attempts, summary.flags) == ("succeeded", 1, [])
        took.append((float(slow), over - float(ends_at)))
        if took[-1][0] < 0.02 and took[-1][1] < 2 + 3:  # ETTWATCH_EXIT_S, and the end of an interpreter
            return
    raise AssertionError(took)


FOLDERS = ["a file", "a loop of links", "a link to nowhere", "not writable", "a device"]


def spoil(kind: str, spool: Path) -> Path:
    """Make a spool folder that cannot be one."""
    if kind == "a file":
        spool.write_text("")
    elif kind == "a loop of links":
        spool.symlink_to(spool)
    elif kind == "a link to nowhere":
        spool.symlink_to("/not/there/at/all")
    elif kind == "a device":
        return Path("/dev/null")
    else:
        return Path("/proc/1/spool")  # no user may make anything there
    return spool


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_spool_folder_that_cannot_be_one(tmp_path: Path, spool: Path, kind: str) -> None:
    plain = run(script(tmp_path), tmp_path / "none", {"ETTWATCH_DISABLED": "1"})
    done = run(script(tmp_path), spoil(kind, spool), DOWN)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("events wait in memory: cannot write to the spool folder") == 1
    assert "are lost at exit" in done.stderr


class Takes:
    """A producer that takes everything."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def send(self, records: list[Record]) -> list[bool]:
        self.lines += [line for record in records for line in record.lines]
        return [True] * len(records)

    def close(self) -> None: ...


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_spool_folder_that_cannot_be_one_keeps_nothing_from_the_brokers(
    spool: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes = Takes()

    def connect(brokers: Brokers) -> Takes:
        return takes

    monkeypatch.setattr(round_module, "connect", connect)
    settings = read({"ETTWATCH_SPOOL": str(spoil(kind, spool)), "ETTWATCH_KAFKA": "localhost:9092"})
    sent = FileTransport(settings, "job", "host")
    told = [b'{"job":"job","n":%d}' % n for n in range(1200)]
    for line in told:
        sent.put(line + b"\n", True)
    work = Round(settings, "host", sent)
    while work.send():
        pass
    assert takes.lines == told
    assert not sent.waiting
    work.close()


class Interrupts(Exception):
    """What a trainer raises from its signal handler, as for a time limit."""


def by_function(number: int, frame: FrameType | None) -> None:
    raise Interrupts


class Handler:
    def by_method(self, number: int, frame: FrameType | None) -> None:
        raise Interrupts

    def __call__(self, number: int, frame: FrameType | None) -> None:
        raise TimeoutError("of the trainer")  # an OSError, as those of a disk


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (by_function, Interrupts),
        (partial(by_function), Interrupts),
        (Handler().by_method, Interrupts),
        (Handler(), TimeoutError),
    ],
)
@pytest.mark.parametrize("where", ["write", "open", "fstat"])
def test_what_the_trainers_signal_handler_raises_is_not_kept_from_it(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, handler: object, kind: type[Exception], where: str
) -> None:
    rec = recording.start()
    rec._outbox._transport._close_file()
    before = signal.signal(signal.SIGUSR1, handler)  # type: ignore[arg-type]
    real = getattr(os, where)

    def interrupted(*args: object, **more: object) -> object:
        monkeypatch.setattr(os, where, real)
        signal.raise_signal(signal.SIGUSR1)
        return real(*args, **more)

    monkeypatch.setattr(os, where, interrupted)
    try:
        with pytest.raises(kind), rec.phase("trainer_init.a"):
            raise AssertionError("it was swallowed")
    finally:
        signal.signal(signal.SIGUSR1, before)
    rec.end()
    assert kinds(recording.events()) == ["job_submitted", "attempt_started", "phase_started", *ENDS]


ENDS = ["attempt_ended", "job_ended"]


def test_what_is_the_recorders_own_is_kept_from_the_trainer(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    rec = recording.start()
    before = signal.signal(signal.SIGUSR1, by_function)

    def fails(*args: object) -> None:
        raise TimeoutError(errno.ETIMEDOUT, "a disk far away")

    try:
        with monkeypatch.context() as patch, rec.phase("trainer_init.a"):
            patch.setattr(os, "write", fails)
            rec.phase("trainer_init.b").begin()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert rec._outbox._transport.waiting


def test_a_handler_that_raises_at_any_moment_leaves_the_recorder_whole(tmp_path: Path, spool: Path) -> None:
    code = """
        import signal, threading, time, ettwatch
        class Late(Exception): pass
        armed = False
        def handler(*_):
            global armed
            if armed:
                armed = False
                raise Late
        rec = ettwatch.init(job="job")
        signal.signal(signal.SIGALRM, handler)
        whole = cut = 0
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
        until = time.monotonic() + 8
        while cut < 400 and time.monotonic() < until:
            try:
                armed = True
                with rec.phase("trainer_init.read_config"): pass
                armed = False
                whole += 1
            except Late: cut += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        lock = rec._outbox._transport._lock
        def other():
            free.append(lock.acquire(timeout=30))
            if free[-1]: lock.release()
            with rec.phase("trainer_init.other"): pass
        free = []
        for _ in range(5):
            thread = threading.Thread(target=other)
            thread.start(); thread.join()
        print(whole, cut, all(free))
        rec.end()
    """
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(code))
    done = run(path, spool)
    assert (done.returncode, done.stderr) == (0, "")
    whole, cut, free = done.stdout.split()
    assert int(cut) > 10
    assert free == "True"
    # Rather twice, under one id, than not at all.
    found = kinds({event.id: event for event in map(decode_event, lines(spool))}.values())
    # Whatever was not cut off is told, with both ends, and nothing waits behind a lock that nobody has.
    assert found.count("phase_ended") >= int(whole) + 5
    assert found[-2:] == ENDS


@pytest.mark.parametrize("leads", [True, False])
def test_a_file_of_the_trainers_that_has_the_number_of_the_lock_is_left_alone(
    spool: Path, tmp_path: Path, leads: bool
) -> None:
    first, election = Election(str(spool), "host"), Election(str(spool), "host")
    if not leads:
        assert first.role() == "leads"
    assert election.role() == ("leads" if leads else "follows")
    lock = election._lock
    assert lock is not None
    number = lock.number
    with (tmp_path / "mine").open("w") as mine:
        os.dup2(mine.fileno(), number)
        before = (os.fstat(number).st_ino, os.fstat(number).st_mtime_ns)
        for _ in range(3):
            assert election.role() == ("leads" if leads else "follows")
        election.resign()
        assert (os.fstat(number).st_ino, os.fstat(number).st_mtime_ns) == before
        os.close(number)
    first.resign()


def test_two_ends_at_once_are_one(recording: Recording) -> None:
    rec = recording.start()
    ready = threading.Barrier(8)

    def end(number: int) -> None:
        ready.wait()
        rec.failed(f"by {number}") if number % 2 else rec.end("cancelled")

    threads = [threading.Thread(target=end, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kinds(recording.events()).count("attempt_ended") == kinds(recording.events()).count("job_ended") == 1


def test_a_failure_is_logged_again_after_a_while_with_how_often_it_came(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [1000.0]
    monkeypatch.setattr(log, "monotonic", lambda: now[0])
    for _ in range(4):
        log.trouble("here", ValueError("x"))
    log.trouble("here", KeyError("another"))
    assert len(caplog.records) == 2
    now[0] += log.EVERY_S - 1
    log.trouble("here", ValueError("x"))
    assert len(caplog.records) == 2
    now[0] += 2
    log.trouble("here", ValueError("x"))
    assert caplog.records[-1].message == (
        "ettwatch: here failed: ValueError: x (and 4 times more since it was last logged)"
    )
    for number in range(5000):
        log.warn(str(number), "many")
    assert len(log._said) < 1100


def test_a_failure_that_cannot_be_printed_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Loud(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    log.trouble("here", Loud())
    assert caplog.records[0].message == "ettwatch: here failed: Loud: it cannot be printed"


def test_a_loader_that_goes_on_after_an_error_does_so_when_it_is_tracked(recording: Recording) -> None:
    class Loader:
        def __init__(self) -> None:
            self.count = 0
            self.sampler = "its own"

        def __iter__(self) -> "Loader":
            return self

        def __next__(self) -> int:
            self.count += 1
            if self.count in (1, 3):
                raise ValueError(self.count)
            if self.count > 5:
                raise StopIteration
            return self.count

    def read(batches: Iterator[int]) -> list[object]:
        found: list[object] = []
        while True:
            try:
                found.append(next(batches))
            except StopIteration:
                return found
            except ValueError as error:
                found.append(error.args)

    rec = recording.start()
    tracked = rec.track(Loader())
    assert tracked.sampler == "its own"  # type: ignore[attr-defined]
    assert read(iter(tracked)) == read(iter(Loader())) == [(1,), 2, (3,), 4, 5]
    rec.training_started(position=0)
    assert read(iter(rec.track(Loader()))) == [(1,), 2, (3,), 4, 5]
    assert rec._loop.waiting == 0


def test_beginning_to_read_is_waiting_for_data_too(recording: Recording) -> None:
    class Slow:
        def __iter__(self) -> Iterator[int]:
            time.sleep(0.1)
            return iter([1])

    rec = recording.start()
    rec.training_started(position=0)
    assert list(rec.track(Slow())) == [1]
    assert rec._loop.waited >= 100_000_000


def test_a_second_sigterm_while_it_ends_costs_nothing_that_was_told(spool: Path) -> None:
    code = """
        import signal, sys, time, ettwatch
        rec = ettwatch.init(job="job")
        def handler(*_): sys.exit(0)
        signal.signal(signal.SIGTERM, handler)
        with rec.phase("trainer_init.read_config"): pass
        print("ready", flush=True)
        time.sleep(30)
    """
    server = Server("nothing")
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment(spool, {"ETTWATCH_KAFKA": server.address}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.7)
    process.send_signal(signal.SIGTERM)
    until(lambda: "job_ended" in kinds(events(spool)))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    server.close()
    found = [kind for kind in kinds(events(spool)) if kind != "heartbeat"]
    assert found == ["job_submitted", "attempt_started", "phase_started", "phase_ended", *ENDS]
