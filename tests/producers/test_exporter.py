"""What brings events from the spool folder to Kafka, with a stand-in for the brokers."""

import errno
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ettwatch.delivery import courier as courier_module
from ettwatch.delivery import election as election_module
from ettwatch.delivery import round as round_module
from ettwatch.delivery.courier import Courier
from ettwatch.delivery.election import Election
from ettwatch.delivery.load import load
from ettwatch.delivery.record import Record, Undelivered
from ettwatch.delivery.room import Room, shed
from ettwatch.delivery.round import Round
from ettwatch.delivery.waiting import WaitingFile, WaitingFolder
from ettwatch.settings import Brokers, read
from ettwatch.transport import FileTransport
from support.spooled import python, until

HOST = "host"


class Stub:
    """Brokers that take what they are given, except when told otherwise; `sent` outlives the producers."""

    def __init__(self) -> None:
        self.sent: list[Record] = []
        self.fails: Callable[[], Exception | None] = lambda: None
        self.too_large = 10**9
        self.made = 0

    def __call__(self, brokers: Brokers) -> "Stub":
        if (error := self.fails()) is not None:
            raise error
        self.made += 1
        return self

    def send(self, records: Sequence[Record]) -> list[bool]:
        taken = []
        for record in records:
            if (error := self.fails()) is not None:
                raise error
            fits = len(record.value) <= self.too_large
            if fits:
                self.sent.append(record)
            taken.append(fits)
        return taken

    def close(self) -> None: ...

    def disown(self) -> None: ...

    @property
    def numbers(self) -> list[int]:
        return [json.loads(line)["n"] for record in self.sent for line in record.lines]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    stub = Stub()
    monkeypatch.setattr(round_module, "connect", stub)
    return stub


Make = Callable[..., FileTransport]


@pytest.fixture
def make(spool: Path) -> Iterator[Make]:
    made: list[FileTransport] = []

    def transport(job: str = "job", host: str = HOST, **env: str) -> FileTransport:
        made.append(FileTransport(of(spool, **env), job, host))
        return made[-1]

    yield transport
    for each in made:
        each.close(0)


def of(spool: Path, **env: str):  # type: ignore[no-untyped-def]
    return read({"ETTWATCH_SPOOL": str(spool), "ETTWATCH_KAFKA": "localhost:9092", **env})


def line(number: int, kind: str = "phase_started", job: str = "job", size: int = 0) -> bytes:
    return json.dumps({"v": 1, "kind": kind, "job": job, "n": number, "pad": "x" * size}).encode() + b"\n"


def rounds(work: Round, most: int = 200) -> None:
    for _ in range(most):
        if not work.send():
            return
    raise AssertionError("there is no end of it")


def files(spool: Path) -> list[Path]:
    return sorted(spool.glob("*.kafka.jsonl"))


def test_files_that_wait_for_kafka_say_so_in_their_names(spool: Path, make: Make) -> None:
    make().put(line(1), True)
    (path,) = spool.iterdir()
    assert path.name.startswith("job.host.")
    assert path.name.endswith(".kafka.jsonl")


def test_what_was_told_is_sent_in_order_and_removed(spool: Path, make: Make, stub: Stub) -> None:
    sent = make()
    for number in range(50):
        sent.put(line(number), True)
    work = Round(of(spool), HOST, sent)
    rounds(work)
    assert stub.numbers == list(range(50))
    assert [record.key for record in stub.sent] == [b"job"]
    assert len(files(spool)) == 1  # its writer may go on
    sent.put(line(50), True)
    rounds(work)
    assert stub.numbers == list(range(51))
    sent.close(0)
    rounds(work)
    assert not files(spool)
    assert not list(spool.glob(".*.sent"))
    work.close()


def test_each_job_has_records_of_its_own(spool: Path, make: Make, stub: Stub) -> None:
    for job in ("a", "b 😀", "a"):
        sent = make(job)
        sent.put(line(1, job=job), True)
        sent.put(line(2, job=job), True)
        sent.close(0)
    work = Round(of(spool), HOST, make())
    rounds(work)
    assert [record.key.decode() for record in stub.sent] == ["a", "b 😀", "a"]
    assert all(len(record.lines) == 2 for record in stub.sent)
    work.close()


def test_what_was_sent_is_not_sent_again_by_the_next_process(spool: Path, make: Make, stub: Stub) -> None:
    sent = make()
    sent.put(line(1), True)
    first = Round(of(spool), HOST, sent)
    rounds(first)
    first.close()
    sent.put(line(2), True)
    sent.close(0)
    second = Round(of(spool), HOST, make())
    rounds(second)
    second.close()
    assert stub.numbers == [1, 2]


def test_one_process_of_a_host_sends_for_all(spool: Path, make: Make, stub: Stub) -> None:
    one, two = make(), make()
    leader, follower = Round(of(spool), HOST, one), Round(of(spool), HOST, two)
    one.put(line(1), True)
    two.put(line(2), True)
    leader.watch()
    rounds(follower)
    assert not follower.leads
    assert not stub.sent
    rounds(leader)
    assert sorted(stub.numbers) == [1, 2]
    leader.leave()
    two.put(line(3), True)
    rounds(follower)
    assert follower.leads
    assert sorted(stub.numbers) == [1, 2, 3]
    leader.close()
    follower.close()


def test_one_who_relied_on_the_leader_is_not_forgotten(spool: Path, make: Make, stub: Stub) -> None:
    one, two = make(), make()
    leader = Round(of(spool), HOST, one)
    one.put(line(1), True)
    rounds(leader)
    two.put(line(2), True)
    two.close(0)
    leader.leave()
    assert leader.left_behind()
    rounds(leader)
    leader.leave()
    assert not leader.left_behind()
    assert stub.numbers == [1, 2]


def test_a_leader_that_shows_no_life_is_not_waited_for(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(election_module, "monotonic", lambda: now[0])
    leader, other = Election(str(spool), HOST), Election(str(spool), HOST)
    assert leader.role() == "leads"
    assert other.role() == "follows"
    now[0] += election_module.STALE_S - 1
    assert other.role() == "follows"
    now[0] += 2
    assert other.role() == "alone"
    assert leader.role() == "leads"
    assert other.role() == "follows"
    leader.resign()
    assert other.role() == "leads"
    other.resign()


def test_hosts_that_share_a_folder_have_a_leader_each(spool: Path) -> None:
    one, two = Election(str(spool), "one"), Election(str(spool), "two")
    assert (one.role(), two.role()) == ("leads", "leads")
    one.resign()
    two.resign()


def test_a_lock_that_was_removed_is_made_again(spool: Path) -> None:
    leader, other = Election(str(spool), HOST), Election(str(spool), HOST)
    assert leader.role() == "leads"
    (spool / ".kafka.host.lock").unlink()
    assert other.role() == "leads"
    assert leader.role() == "follows"
    other.resign()
    leader.resign()


def test_where_there_are_no_locks_each_process_sends_its_own(
    spool: Path, make: Make, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    one, two = make("a"), make("b")
    monkeypatch.setattr(fcntl, "flock", flock)
    one.put(line(1), True)
    two.put(line(2), True)
    work = Round(of(spool), HOST, one)
    rounds(work)
    assert stub.numbers == [1]
    work.close()


def test_files_of_other_hosts_are_left_alone_until_they_are_old(spool: Path, make: Make, stub: Stub) -> None:
    foreign = make(host="other")
    foreign.put(line(1), True)
    foreign.close(0)
    work = Round(of(spool), HOST, make())
    rounds(work)
    assert not stub.sent
    old = time.time() - 3600
    os.utime(files(spool)[0], (old, old))
    rounds(work)
    assert stub.numbers == [1]
    assert not files(spool)
    work.close()


def test_brokers_that_fail_cost_no_event_and_no_order(spool: Path, make: Make, stub: Stub) -> None:
    sent = make()
    for number in range(3000):
        sent.put(line(number, size=300), True)
    left = [3]

    def fails() -> Exception | None:
        left[0] -= 1
        return Undelivered("gone") if left[0] == 0 else None

    stub.fails = fails
    work = Round(of(spool), HOST, sent)
    with pytest.raises(Undelivered):
        rounds(work)
    rounds(work)
    seen: set[int] = set()
    order = [n for n in stub.numbers if not (n in seen or seen.add(n))]  # type: ignore[func-returns-value]
    assert order == list(range(3000))
    work.close()


def test_lines_that_are_no_events_are_left_out_and_counted(spool: Path, make: Make, stub: Stub) -> None:
    sent = make()
    sent.put(line(1), True)
    (path,) = files(spool)
    with path.open("ab") as file:
        file.write(b'\0\0\0\0\n{"v":1}\n[]\n\n"text"\n{"job": 5}\n\xff\xfe\n')
    sent.put(line(2), True)
    with path.open("ab") as file:
        file.write(b'{"job": "job", "n": 3')  # the writer was killed in the middle
    work = Round(of(spool), HOST, sent)
    rounds(work)
    assert stub.numbers == [1, 2]
    sent.close(0)
    rounds(work)
    assert sent.drops.counts() == {"damaged": 8}
    assert not files(spool)
    work.close()


def test_a_record_that_is_too_large_is_taken_apart(spool: Path, make: Make, stub: Stub) -> None:
    stub.too_large = 1000
    sent = make()
    for number in range(10):
        sent.put(line(number, size=2000 if number == 4 else 100), True)
    work = Round(of(spool), HOST, sent)
    rounds(work)
    assert stub.numbers == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert sent.drops.counts() == {"refused": 1}
    work.close()


def test_what_the_disk_refuses_is_sent_from_memory(
    spool: Path, make: Make, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = make()
    sent.put(line(0), True)
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if data.startswith(b'{"v"'):
            raise OSError(errno.ENOSPC, "full")
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    for number in range(1, 1300):
        sent.put(line(number), True)
    work = Round(of(spool), HOST, sent)
    rounds(work)
    assert stub.numbers == list(range(1300))
    assert not sent.waiting
    work.close()


def spooled(spool: Path, make: Make, count: int, job: str = "job") -> FileTransport:
    sent = make(job, ETTWATCH_SPOOL_MB="1")
    for number in range(count):
        boundary = number % 100 == 0
        sent.put(line(number, "phase_started" if boundary else "progress", size=200), boundary)
    return sent


def test_the_spool_is_bounded_and_boundary_events_stay(spool: Path, make: Make, stub: Stub) -> None:
    stub.fails = lambda: Undelivered("down")
    sent = spooled(spool, make, 2000)
    work = Round(of(spool, ETTWATCH_SPOOL_MB="1"), HOST, sent)
    taken = []
    for number in range(2000, 20_000):
        boundary = number % 100 == 0
        sent.put(line(number, "phase_started" if boundary else "progress", size=200), boundary)
        if number % 500 == 0:
            work.watch()
            taken.append(sum(path.stat().st_size for path in files(spool)))
    assert max(taken) < 1_200_000
    dropped = sent.drops.counts()
    assert set(dropped) == {"spool_full"}
    stub.fails = lambda: None
    sent.close(0)
    rounds(work)
    numbers = stub.numbers
    assert [n for n in numbers if n % 100 == 0] == list(range(0, 20_000, 100))
    assert len(numbers) + dropped["spool_full"] == 20_000
    others = [n for n in numbers if n % 100]
    assert others == sorted(others)
    assert min(others) > 10_000  # it is the oldest that went
    assert not sent.sheds
    work.close()


def test_boundary_events_alone_may_take_more(spool: Path, make: Make, stub: Stub) -> None:
    stub.fails = lambda: Undelivered("down")
    sent = make(ETTWATCH_SPOOL_MB="1")
    work = Round(of(spool, ETTWATCH_SPOOL_MB="1"), HOST, sent)
    for number in range(8000):
        sent.put(line(number, size=200), True)
        if number % 1000 == 0:
            work.watch()
    work.watch()
    assert sent.sheds
    sent.put(line(-1, "progress"), False)
    assert sent.drops.counts() == {"spool_full": 1}
    stub.fails = lambda: None
    rounds(work)
    assert stub.numbers == list(range(8000))
    work.watch()
    assert not sent.sheds
    work.close()


def test_that_there_is_no_room_is_known_to_those_who_follow(spool: Path, make: Make, stub: Stub) -> None:
    stub.fails = lambda: Undelivered("down")
    one, two = make(ETTWATCH_SPOOL_MB="1"), make()
    for number in range(6000):
        one.put(line(number, size=200), True)
    leader = Round(of(spool, ETTWATCH_SPOOL_MB="1"), HOST, one)
    follower = Round(of(spool, ETTWATCH_SPOOL_MB="1"), HOST, two)
    leader.watch()
    follower.watch()
    assert two.sheds
    leader.close()
    follower.close()


def test_a_file_that_made_room_is_sent_from_its_new_beginning(spool: Path, make: Make, stub: Stub) -> None:
    sent = spooled(spool, make, 300)
    sent.close(0)
    waiting = WaitingFolder(str(spool), HOST)
    (file,) = waiting.look()
    lines = file.read(0)
    file.advance(lines[49].end)
    assert shed(file, lambda: None) == 300 - 3 - 49
    # Whoever reads the old mark beside the new file, as after a crash between the two, must not skip by it.
    (again,) = WaitingFolder(str(spool), HOST).look()
    assert again.offset == 0
    cargo = load([again], lambda: None)
    assert [json.loads(text)["n"] for record in cargo.records for text in record.lines] == [100, 200]


def test_room_is_not_made_in_a_file_that_is_being_written(spool: Path, make: Make) -> None:
    spooled(spool, make, 300)
    files = WaitingFolder(str(spool), HOST).look()
    assert Room(str(spool), HOST, 1000).keep(files, lambda: None) == 0


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 2), st.booleans()),
            st.tuples(st.sampled_from(["send", "fail", "crash", "end"]), st.integers(0, 2), st.booleans()),
        ),
        max_size=60,
    )
)
def test_nothing_is_lost_whatever_happens_in_between(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int, bool]]
) -> None:
    spool = tmp_path_factory.mktemp("law")
    stub = Stub()
    told: dict[int, list[int]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(round_module, "connect", stub)
        writers = [FileTransport(of(spool), "job", HOST) for _ in range(3)]
        works = [Round(of(spool), HOST, writer) for writer in writers]
        for number, (what, who, boundary) in enumerate(acts):
            if what == "put":
                writers[who].put(line(number), boundary)
                told.setdefault(id(writers[who]), []).append(number)
            elif what == "crash":  # the process ends without a word, its locks with it
                writers[who].close(0)
                works[who].close()
                works[who] = Round(of(spool), HOST, writers[who])
            elif what == "end":
                writers[who].close(0)
                works[who].leave()
            else:
                once = iter([None, Undelivered("gone")] if boundary else [Undelivered("gone")])
                stub.fails = (lambda: next(once, None)) if what == "fail" else (lambda: None)  # noqa: B023
                try:
                    works[who].send()
                except Undelivered:
                    works[who].disconnect()
                stub.fails = lambda: None
        for work in works:
            work.leave()
        for writer in writers:
            writer.close(0)
        rounds(works[0])
        works[0].close()
    seen: set[int] = set()
    order = [n for n in stub.numbers if not (n in seen or seen.add(n))]  # type: ignore[func-returns-value]
    assert seen == {n for numbers in told.values() for n in numbers}
    assert not files(spool)
    for numbers in told.values():
        assert [n for n in order if n in set(numbers)] == numbers


def courier(spool: Path, sent: FileTransport, monkeypatch: pytest.MonkeyPatch, **env: str) -> Courier:
    monkeypatch.setattr(courier_module, "FIRST_S", 0.01)
    monkeypatch.setattr(courier_module, "LOOK_S", 0.02)
    return Courier(of(spool, **env), HOST, sent)


@pytest.mark.parametrize(
    "error", [RuntimeError("surprise"), ImportError("No module named 'kafka'"), Undelivered("down"), MemoryError()]
)
def test_a_transport_that_raises_reaches_nobody_and_is_told_of_once(
    spool: Path,
    make: Make,
    stub: Stub,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    monkeypatch.setattr(courier_module, "INCAPABLE_S", 0.01)
    monkeypatch.setattr(courier_module, "LAST_RETRY_S", 0.01)
    calls = 0

    def fails() -> Exception:
        nonlocal calls
        calls += 1
        return error

    stub.fails = fails
    sent = make()
    post = courier(spool, sent, monkeypatch, ETTWATCH_EXIT_S="60")
    for number in range(5):
        sent.put(line(number), True)
        post.wake()
    until(lambda: calls >= 3)
    assert len(caplog.records) == 1
    stub.fails = lambda: None
    until(lambda: len(stub.sent) > 0)
    sent.close(0)
    post.flush(60)
    assert stub.numbers == list(range(5))
    assert post._thread is None


def test_flush_waits_no_longer_than_told_and_never_twice(
    spool: Path, make: Make, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def fails() -> None:
        go_on.wait(120)

    stub.fails = fails
    sent = make()
    post = courier(spool, sent, monkeypatch, ETTWATCH_EXIT_S="0.3")
    sent.put(line(1), True)
    post.wake()
    asked: list[float | None] = []
    wait = post._flushed.wait

    def waits(seconds: float | None = None) -> bool:
        asked.append(seconds)
        return wait(seconds)

    monkeypatch.setattr(post._flushed, "wait", waits)
    post.flush(60)
    post.flush(60)
    assert asked[0] == 0.3
    assert asked[1] is not None
    assert asked[1] < 0.05  # nothing is left of it
    go_on.set()
    until(lambda: post._thread is None)
    assert stub.numbers == [1]


def test_a_flush_in_the_middle_of_a_look_has_a_try_of_its_own(
    spool: Path, make: Make, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Exception | None] = []
    looks, go_on = threading.Event(), threading.Event()
    look = Round.watch

    def fails() -> Exception | None:
        tried.append(None if tried else Undelivered("down"))
        return tried[-1]

    def watch(work: Round) -> list[WaitingFile]:
        if tried and not looks.is_set():  # it only looks: it is too early for another try
            looks.set()
            assert go_on.wait(60)
        return look(work)

    stub.fails = fails
    monkeypatch.setattr(Round, "watch", watch)
    sent = make()
    sent.put(line(1), True)
    post = courier(spool, sent, monkeypatch, ETTWATCH_EXIT_S="60")
    post.wake()
    assert looks.wait(60)
    flush = threading.Thread(target=post.flush, args=(60,))
    flush.start()
    until(lambda: post._flushing)
    go_on.set()
    flush.join()
    assert stub.numbers == [1]
    until(lambda: post._thread is None)


def test_a_courier_that_has_ended_begins_again_with_the_next_event(
    spool: Path, make: Make, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = make()
    post = courier(spool, sent, monkeypatch)
    for number in range(3):
        sent.put(line(number), True)
        post.wake()
        post._left_s = 60
        post.flush(60)
    sent.close(0)
    post.wake()
    post._left_s = 60
    post.flush(60)
    assert stub.numbers == [0, 1, 2]


def test_a_fork_in_the_middle_of_an_import_leaves_the_child_able_to_import(spool: Path, tmp_path: Path) -> None:
    package = tmp_path / "path" / "kafka"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import sys, time\n"
        "while not hasattr(sys, 'forks'): time.sleep(0.001)\n"
        "time.sleep(0.5)\n"
        "KafkaProducer = errors = None\n"
    )
    listener = socket.create_server(("127.0.0.1", 0))
    code = """
        import os, sys, time, ettwatch
        from ettwatch.delivery import guard
        guard.WAIT_S = 60
        rec = ettwatch.init(job="job")
        with rec.phase("trainer_init"): pass
        while "kafka" not in sys.modules: time.sleep(0.001)
        sys.forks = True
        pid = os.fork()
        if pid == 0:
            import kafka
            os._exit(0)
        waited = hasattr(sys.modules["kafka"], "KafkaProducer")
        if not waited: os.kill(pid, 9)
        assert waited, "the fork did not wait for the end of the import"
        assert os.waitpid(pid, 0)[1] == 0
        os._exit(0)
    """
    env = {
        "ETTWATCH_KAFKA": f"127.0.0.1:{listener.getsockname()[1]}",
        "PYTHONPATH": str(tmp_path / "path"),
        "PYTHONWARNINGS": "ignore",
    }
    done = python(code, spool, env)
    listener.close()
    assert done.returncode == 0, done.stderr


def test_the_brokers_are_shown_to_nobody() -> None:
    told = of(Path("/spool"), ETTWATCH_KAFKA_PASSWORD="hush")
    assert "hush" not in repr(told)
    assert told.brokers.env["ETTWATCH_KAFKA_PASSWORD"] == "hush"
    assert told.brokers.topic == "ett.events"
