import errno
import fcntl
import gc
import json
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from ettwatch import transport as transport_module
from ettwatch.backlog import Backlog
from ettwatch.settings import read
from ettwatch.transport import FileTransport
from support.spooled import Recording, events, kinds, lines, python


def transport(folder: Path, env: dict[str, str] | None = None, job: str = "job") -> FileTransport:
    return FileTransport(read({"ETTWATCH_SPOOL": str(folder), **(env or {})}), job, "host")


def line(number: int, size: int = 0) -> bytes:
    return json.dumps({"n": number, "pad": "x" * size}).encode() + b"\n"


def numbers(folder: Path) -> list[int]:
    return [json.loads(text)["n"] for text in lines(folder)]


def locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def refuse(code: int, after: int = 0) -> Callable[[int, bytes], int]:
    """A write that takes the first `after` bytes of a line and then answers with an error."""
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if after and data.startswith(b"{"):
            return real(fd, data[:after])
        raise OSError(code, os.strerror(code))

    return write


def test_a_line_is_on_disk_when_put_returns_in_a_locked_file_of_the_agreed_name(spool: Path) -> None:
    sent = transport(spool, job="a b/ünï😀" + "c" * 1000)
    before = time.time_ns() // 1_000_000
    sent.put(line(1), True)
    (path,) = spool.iterdir()
    job, host, pid, started, _, suffix = path.name.split(".")
    assert job.startswith("a-b-n-")
    assert len(path.name) < 200
    assert (host, pid, suffix) == ("host", str(os.getpid()), "jsonl")
    assert before - 10_000 <= int(started) <= time.time_ns() // 1_000_000
    assert numbers(spool) == [1]
    assert locked(path)
    assert sent.close(0)
    assert not locked(path)


def test_each_line_is_one_write(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    real = os.write

    def write(fd: int, data: bytes) -> int:
        written.append(data)
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    sent = transport(spool)
    for number in range(3):
        sent.put(line(number), True)
    monkeypatch.undo()
    assert written == lines(spool)


@pytest.mark.parametrize("wanted", [True, False])
def test_it_waits_for_the_disk_only_if_asked(spool: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    transport(spool, {"ETTWATCH_FSYNC": "1"} if wanted else {}).put(line(1), True)
    assert bool(synced) == wanted


def test_files_are_rotated_and_let_go_of(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "ROTATE_BYTES", 1000)
    sent = transport(spool)
    for number in range(30):
        sent.put(line(number, 100), True)
    files = sorted(spool.iterdir(), key=lambda path: int(path.name.split(".")[4]))
    assert len(files) >= 4
    assert all(path.stat().st_size <= 1000 for path in files)
    assert [locked(path) for path in files] == [False] * (len(files) - 1) + [True]
    assert [json.loads(text)["n"] for path in files for text in path.read_bytes().splitlines()] == list(range(30))


@pytest.mark.parametrize(("code", "after"), [(errno.ENOSPC, 0), (errno.ENOSPC, 5), (errno.EIO, 0), (errno.EDQUOT, 0)])
def test_what_a_full_disk_refuses_is_kept_and_written_later_in_order(
    spool: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int, after: int
) -> None:
    sent = transport(spool)
    sent.put(line(0), True)
    monkeypatch.setattr(os, "write", refuse(code, after))
    for number in range(1, 20):
        sent.put(line(number), number % 2 == 0)
    assert sent.waiting == 19
    assert numbers(spool) == [0]  # and nothing of half a line
    monkeypatch.undo()
    monkeypatch.setattr(transport_module, "FIRST_RETRY_S", 0.0)
    deadline = time.monotonic() + 60
    while sent.waiting and time.monotonic() < deadline:
        sent.retry()
    sent.put(line(20), True)
    assert numbers(spool) == list(range(21))
    assert len(caplog.records) == 1
    assert str(spool) in caplog.text
    assert "ETTWATCH_SPOOL" in caplog.text


def test_a_disk_that_refuses_is_not_asked_at_every_call(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def write(fd: int, data: bytes) -> int:
        nonlocal asked
        asked += 1
        raise OSError(errno.ENOSPC, "full")

    sent = transport(spool)
    monkeypatch.setattr(os, "write", write)
    for number in range(1000):
        sent.put(line(number), True)
    assert asked < 10


def test_a_limit_on_file_sizes_costs_no_event(spool: Path) -> None:
    # The kernel's own refusal (EFBIG after a short write), and not a simulated one.
    code = """
        import resource, ettwatch
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        with ettwatch.init(job="job") as rec:
            for n in range(50):
                with rec.phase(f"trainer_init.n{n}"): pass
    """
    done = python(code, spool)
    assert (done.returncode, done.stderr) == (0, "")
    found = events(spool, "phase_started", "phase_ended")
    assert len(found) == 100
    assert all(path.stat().st_size <= 2000 for path in spool.glob("*.jsonl"))
    assert len(list(spool.glob("*.jsonl"))) > 5


def test_a_folder_that_cannot_be_made_costs_the_trainer_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code = """
        import ettwatch
        with ettwatch.init(job="job") as rec, rec.training():
            for n in rec.track(range(100)):
                rec.step(1)
                with rec.phase("wasted_training.evaluation"): pass
        print("trained")
    """
    done = python(code, tmp_path / "file" / "spool")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert done.stderr.count("events wait in memory") == 1
    assert done.stderr.count("keeping the numbers of attempts") == 1
    assert done.stderr.count("\n") == 3  # these, and what is lost at exit
    assert "are lost at exit" in done.stderr


def test_a_folder_that_is_not_writable_costs_the_trainer_nothing(spool: Path) -> None:
    spool.mkdir(mode=0o500)
    sent = transport(spool)
    root = os.geteuid() == 0  # whom no mode keeps out
    if root:
        os.seteuid(65534)
    try:
        sent.put(line(1), True)
    finally:
        if root:
            os.seteuid(0)
    assert sent.waiting == 1
    spool.chmod(0o700)
    assert sent.close(1)
    assert numbers(spool) == [1]


def test_a_folder_that_is_removed_is_made_again(spool: Path, caplog: pytest.LogCaptureFixture) -> None:
    sent = transport(spool)
    sent.put(line(1), True)
    for path in spool.iterdir():
        path.unlink()
    spool.rmdir()
    sent.put(line(2), True)
    assert numbers(spool) == [2]
    assert not caplog.records


def test_a_descriptor_that_others_closed_is_not_written_to(spool: Path, tmp_path: Path) -> None:
    sent = transport(spool)
    sent.put(line(1), True)
    assert sent._file is not None
    stolen = sent._file._file.number
    with (tmp_path / "other").open("w") as other:
        os.dup2(other.fileno(), stolen)
        sent.put(line(2), True)
        sent.close(1)
        os.fstat(stolen)  # still open: it is not ours to close
        os.close(stolen)
    assert (tmp_path / "other").read_bytes() == b""
    assert numbers(spool) == [1, 2]


def test_where_there_are_no_locks_it_writes_without(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", flock)
    transport(spool).put(line(1), True)
    assert numbers(spool) == [1]


def test_a_signal_handler_that_speaks_in_the_middle_of_a_write_neither_hangs_nor_loses(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = transport(spool)
    real = os.write
    inner = iter([2])

    def write(fd: int, data: bytes) -> int:
        for number in inner:
            signal.raise_signal(signal.SIGUSR1)
            assert sent.waiting == 1, number
        return real(fd, data)

    def handler(number: int, frame: FrameType | None) -> None:
        sent.put(line(2), True)
        sent.close(0)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        monkeypatch.setattr(os, "write", write)
        sent.put(line(1), True)
    finally:
        signal.signal(signal.SIGUSR1, before)
    sent.put(line(3), True)
    assert numbers(spool) == [1, 2, 3]


def test_an_interrupt_in_the_middle_of_a_write_loses_nothing(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = transport(spool)

    def write(fd: int, data: bytes) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(KeyboardInterrupt):
        sent.put(line(1), True)
    monkeypatch.undo()
    sent.put(line(2), True)
    assert numbers(spool) == [1, 2]


def test_a_thread_that_hangs_in_a_write_does_not_hang_the_others(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "LOCK_S", 0.05)
    sent = transport(spool)
    hangs, go_on = threading.Event(), threading.Event()
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if threading.current_thread() is stuck:
            hangs.set()
            assert go_on.wait(60)
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    stuck = threading.Thread(target=sent.put, args=(line(1), True))
    stuck.start()
    assert hangs.wait(60)
    sent.put(line(2), True)
    assert sent.waiting == 1
    go_on.set()
    stuck.join()
    sent.put(line(3), True)
    assert numbers(spool) == [1, 2, 3]


def test_threads_write_whole_lines(spool: Path) -> None:
    sent = transport(spool)

    def write(start: int) -> None:
        for number in range(start, start + 200):
            sent.put(line(number, 50), True)

    threads = [threading.Thread(target=write, args=(start,)) for start in range(0, 1600, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers(spool)) == list(range(1600))


def test_a_failure_nobody_thought_of_does_not_come_out(
    spool: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def makedirs(*args: object, **kwargs: object) -> None:
        raise RuntimeError("surprise")

    sent = transport(spool)
    monkeypatch.setattr(os, "makedirs", makedirs)
    for number in range(3):
        sent.put(line(number), True)
    monkeypatch.undo()
    assert [record.message for record in caplog.records] == [
        "ettwatch: writing to the spool failed: RuntimeError: surprise"
    ]
    sent.retry()
    assert numbers(spool) == [0, 1, 2]


def test_the_backlog_drops_progress_first_and_counts() -> None:
    backlog = Backlog(5)
    for number, boundary in enumerate([True, False, True, False, True, True, True, True, False]):
        backlog.push(line(number), boundary)
    kept = []
    while len(backlog):
        kept.append(json.loads(backlog.peek())["n"])
        backlog.pop()
    assert kept == [2, 4, 5, 6, 7]
    assert backlog.dropped == 4
    with pytest.raises(IndexError):
        backlog.peek()


def test_dropped_events_are_told_of_when_the_disk_is_back(
    spool: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sent = transport(spool, {"ETTWATCH_QUEUE_EVENTS": "10"})
    monkeypatch.setattr(os, "write", refuse(errno.ENOSPC))
    for number in range(25):
        sent.put(line(number), number >= 20)
    monkeypatch.undo()
    assert sent.close(1)
    assert numbers(spool) == list(range(15, 25))
    assert sent.drops.counts() == {"queue_full": 15}
    assert "more events waited in memory than ETTWATCH_QUEUE_EVENTS allows" in caplog.text


@contextmanager
def few_descriptors(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_thousand_phases_leak_nothing(recording: Recording) -> None:
    rec = recording.start()
    # One object outlives the loop; its phases must not gather in it.
    for n in range(100):
        with rec.phase(f"trainer_init.n{n}"):
            pass
    gc.collect()  # what earlier tests left is not let go of meanwhile
    threads, descriptors = set(threading.enumerate()), len(os.listdir("/dev/fd"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with few_descriptors(max(64, descriptors + 8)):
        for n in range(10_000):
            with rec.phase(f"trainer_init.n{n}") as span:
                span.set(n=n)
    assert set(threading.enumerate()) <= threads
    assert len(os.listdir("/dev/fd")) <= descriptors
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 4096  # KiB
    assert len(lines(recording.spool)) == 2 + 2 * 10_100


def test_two_recorders_of_one_job_write_two_files(recording: Recording) -> None:
    for _ in range(2):
        recording.start().end()
    assert len(list(recording.spool.glob("*.jsonl"))) == 2
    assert kinds(recording.events()).count("job_submitted") == 2


def test_a_disk_that_takes_nothing_is_not_littered_with_empty_files(tmp_path: Path) -> None:
    code = f"""
        import resource
        from ettwatch.settings import read
        from ettwatch.transport import FileTransport

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        transport = FileTransport(read({{}}, {str(tmp_path)!r}), "job", "host")
        for n in range(5):
            transport._retry_at = 0.0
            transport.put(b"{{}}\\n", True)
        transport.close(0.0)
        assert transport.waiting == 5
    """
    done = python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", ["append", "truncate"])
def test_half_a_line_from_elsewhere_spoils_no_event(tmp_path: Path, change: str) -> None:
    transport = FileTransport(read({}, str(tmp_path)), "job", "host")
    transport.put(b'{"n":1}\n', True)
    (path,) = tmp_path.glob("*.jsonl")
    with path.open("ab") as file:
        if change == "append":
            file.write(b'{"v":1,"half')
        else:
            file.truncate(3)
    transport.put(b'{"n":2}\n', True)
    transport.put(b'{"n":3}\n', True)
    assert transport.close(1.0)
    (other,) = set(tmp_path.glob("*.jsonl")) - {path}
    assert other.read_bytes() == b'{"n":2}\n{"n":3}\n'
