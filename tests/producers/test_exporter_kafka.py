"""Events to a real broker: nothing is lost and nothing waits for it, whatever becomes of it."""

import itertools
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ettwatch.delivery.producer import Producer
from ettwatch.delivery.record import Record
from ettwatch.settings import Brokers
from ettwatch_schemas import PhaseStarted
from support.kafka import Cluster
from support.road import FarCluster, Road
from support.sent import Topic, decoded, in_order, make_events_topic, repetitions
from support.spooled import environment, python, timeline

pytestmark = pytest.mark.kafka

_numbers = itertools.count()


@pytest.fixture(scope="module")
def way() -> Iterator[tuple[Road, Cluster]]:
    with Road() as road, FarCluster(road) as cluster:
        yield road, cluster


@pytest.fixture
def road(way: tuple[Road, Cluster]) -> Iterator[Road]:
    road, _ = way
    yield road
    road.delay_s = 0.0
    if road.closed:
        road.open()


@pytest.fixture
def prefix(way: tuple[Road, Cluster]) -> str:
    name = f"sdk{next(_numbers)}"
    make_events_topic(way[1].bootstrap, name)
    return name


@pytest.fixture
def topic(way: tuple[Road, Cluster], prefix: str) -> Iterator[Topic]:
    topic = Topic(way[1].bootstrap, prefix)
    yield topic
    topic.close()


@pytest.fixture
def env(road: Road, prefix: str) -> dict[str, str]:
    return {
        "ETTWATCH_KAFKA": road.address,
        "ETTWATCH_TOPIC_PREFIX": prefix,
        "ETTWATCH_HEARTBEAT_EVERY_S": "3600",
        "ETTWATCH_EXIT_S": "60",  # long enough for a busy machine
    }


TRAIN = """
    import sys, time, ettwatch
    steps, pause = int(sys.argv[1]) if len(sys.argv) > 1 else 20, 0.02
    halts = set(map(int, sys.argv[2:]))
    weight = 0.0
    rec = ettwatch.init(job="a job 😀")
    with rec.phase("trainer_init.pre_train"):
        time.sleep(0.05)
    with rec.training(position=0, report_every_s=0.3):
        for n in range(steps):
            if n in halts:  # until it is told to go on
                print("at", n, flush=True)
                sys.stdin.readline()
            weight += 0.5 ** n
            time.sleep(pause)
            rec.step(8)
            if n == steps // 2:
                with rec.checkpoint():
                    pass
    print(repr(weight))
    began = time.monotonic()
    rec.end()
    print(f"{time.monotonic() - began:.3f}", file=sys.stderr)
"""
BOUNDARY = [
    *["job_submitted", "attempt_started", "phase_started", "phase_ended", "training_started"],
    *["phase_started", "phase_ended", "checkpoint_durable", "training_ended", "attempt_ended", "job_ended"],
]


def start(code: str, spool: Path, env: Mapping[str, str], *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        env=environment(spool, env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def halted(process: subprocess.Popen[str], step: int) -> None:
    """Wait until the training stands at a step where it is to."""
    assert process.stdout is not None
    assert process.stdout.readline() == f"at {step}\n"


def go_on(process: subprocess.Popen[str]) -> None:
    """Let the training go on from where it stands."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def waiting(spool: Path) -> list[Path]:
    return sorted(spool.glob("*.kafka.jsonl"))


def boundary(found: list[str]) -> list[str]:
    return [kind for kind in found if kind not in ("progress", "heartbeat")]


def is_right(found: list[dict[str, Any]], **more: object) -> None:
    """The timeline of the job is that of one attempt that trained and ended well."""
    own = [event for event in decoded(found) if event.job == found[0]["job"]]
    summary = timeline(own).summary
    told = {"status": "succeeded", "attempts": 1, "nof": 0, "flags": []} | more
    assert {name: getattr(summary, name) for name in told} == told
    assert summary.effective_s > 0
    assert abs(sum(summary.components.values()) + summary.effective_s - summary.e2e_s) < 1e-6


WEIGHT = repr(sum(0.5**n for n in range(20)))


def test_everything_is_there_when_the_process_has_ended(spool: Path, env: dict[str, str], topic: Topic) -> None:
    done = python(TRAIN, spool, env)
    assert (done.returncode, done.stdout.strip()) == (0, WEIGHT)
    assert float(done.stderr) < 60
    found = topic.until_ended("a job 😀")
    assert boundary([event["kind"] for event in found]) == BOUNDARY
    assert in_order(found)
    assert not repetitions(found)
    assert len(topic.records) < len(found) / 2  # many events in one record
    assert not waiting(spool)
    summary = timeline(decoded(found)).summary
    assert (summary.status, summary.flags) == ("succeeded", [])
    assert summary.effective_s > 0.3


def test_broker_down_at_start_and_back_in_the_middle(
    spool: Path, env: dict[str, str], topic: Topic, road: Road
) -> None:
    road.close()
    process = start(TRAIN, spool, env, "150", "75")
    assert process.stderr is not None
    said = process.stderr.readline()
    halted(process, 75)
    assert waiting(spool)
    road.open()
    go_on(process)
    out, err = process.communicate(timeout=120)
    err = said + err
    assert (process.returncode, out.strip()) == (0, repr(sum(0.5**n for n in range(150))))
    assert "nothing listens there" in err
    assert err.count("ettwatch:") == 1
    found = topic.until_ended("a job 😀")
    assert boundary([event["kind"] for event in found]) == BOUNDARY
    assert in_order(found)
    assert not waiting(spool)
    is_right(found)


def test_broker_down_all_the_time_and_the_next_process_delivers(
    spool: Path, env: dict[str, str], topic: Topic, road: Road
) -> None:
    road.close()
    done = python(TRAIN, spool, env)
    assert (done.returncode, done.stdout.strip()) == (0, WEIGHT)
    assert float(done.stderr.splitlines()[-1]) < 30  # nobody waits for what is known to be down
    assert waiting(spool)
    road.open()
    later = python('import ettwatch\nettwatch.init(job="the next").end()', spool, env)
    assert (later.returncode, later.stderr) == (0, "")
    found = topic.until(
        lambda found: {event["job"] for event in found if event["kind"] == "job_ended"} == {"a job 😀", "the next"}
    )
    assert boundary([event["kind"] for event in found if event["job"] == "a job 😀"]) == BOUNDARY
    is_right(found)
    assert not repetitions(found)
    assert not waiting(spool)
    assert not list(spool.glob(".*.sent"))


def test_broker_lost_in_the_middle_and_back_again(spool: Path, env: dict[str, str], topic: Topic, road: Road) -> None:
    topic.read()
    process = start(TRAIN, spool, env, "250", "75", "150")
    topic.until(lambda found: any(event["kind"] == "progress" for event in found))
    topic.close()
    halted(process, 75)
    road.close()
    go_on(process)
    halted(process, 150)  # 1.5 s without it
    assert waiting(spool)
    road.open()
    go_on(process)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert repr(sum(0.5**n for n in range(250))) == out.strip()
    found = topic.until_ended("a job 😀")
    once = list({event["id"]: event for event in found}.values())
    assert boundary([event["kind"] for event in once]) == BOUNDARY
    assert in_order(found)
    is_right(found)


def test_broker_lost_in_the_middle_and_still_away_at_the_end(
    spool: Path, env: dict[str, str], topic: Topic, road: Road
) -> None:
    topic.read()
    process = start(TRAIN, spool, {**env, "ETTWATCH_EXIT_S": "2"}, "200", "100")
    topic.until(lambda found: any(event["kind"] == "progress" for event in found))
    topic.close()
    halted(process, 100)
    road.close()
    go_on(process)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert out.strip() == repr(sum(0.5**n for n in range(200)))
    assert "Traceback" not in err
    assert float(err.splitlines()[-1]) < 2 + 8  # ETTWATCH_EXIT_S, and some for a slow machine
    assert waiting(spool)
    road.open()
    python('import ettwatch\nettwatch.init(job="the next").end()', spool, env)
    found = topic.until_ended("a job 😀")
    once = [event for event in {e["id"]: e for e in found}.values() if event["job"] == "a job 😀"]
    assert boundary([event["kind"] for event in once]) == BOUNDARY
    is_right(once)


@pytest.mark.slow
def test_a_broker_that_is_killed_and_started_again(
    way: tuple[Road, Cluster], spool: Path, env: dict[str, str], topic: Topic
) -> None:
    _, cluster = way
    topic.read()
    process = start(TRAIN, spool, env, "400", "200")
    topic.until(lambda found: any(event["kind"] == "progress" for event in found))
    topic.close()
    halted(process, 200)
    cluster.kill(0)
    go_on(process)
    cluster.start(0)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out.strip()) == (0, repr(sum(0.5**n for n in range(400))))
    python('import ettwatch\nettwatch.init(job="the next").end()', spool, env)
    found = topic.until_ended("a job 😀")
    once = [event for event in {e["id"]: e for e in found}.values() if event["job"] == "a job 😀"]
    assert boundary([event["kind"] for event in once]) == BOUNDARY
    assert in_order(found)
    is_right(once)


def test_a_broker_200_ms_away_slows_nothing(spool: Path, env: dict[str, str], topic: Topic, road: Road) -> None:
    code = """
        import time, ettwatch
        rec = ettwatch.init(job="far")
        slow, weight = [], 0.0
        with rec.training(position=0, report_every_s=0.3):
            for n in range(300):
                weight += 0.5 ** n
                time.sleep(0.01)
                began = time.perf_counter()
                with rec.phase("wasted_training.evaluation"): pass
                rec.step(1)
                slow.append(time.perf_counter() - began)
        rec.end()
        print(weight, sorted(slow)[len(slow) // 2])
    """
    road.delay_s = 0.1
    done = python(code, spool, env)
    assert (done.returncode, done.stderr) == (0, "")
    weight, slow = done.stdout.split()
    assert weight == repr(sum(0.5**n for n in range(300)))
    assert float(slow) < 0.05  # and of those that waited for it there would be more than half
    found = topic.until_ended("far")
    assert [event["kind"] for event in found].count("phase_ended") == 300
    assert in_order(found)
    is_right(found)


def test_a_full_disk_keeps_nothing_from_the_broker(spool: Path, env: dict[str, str], topic: Topic) -> None:
    code = """
        import errno, os, ettwatch
        def write(fd, data, real=os.write):
            if data.startswith(b'{"v":1'):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(fd, data)
        os.write = write
        rec = ettwatch.init(job="full")
        for n in range(50):
            with rec.phase(f"trainer_init.n{n}"): pass
        with rec.training(position=0):
            for n in range(3): rec.step(8)
        rec.end()
        print(rec.dropped)
    """
    done = python(code, spool, env)
    assert (done.returncode, done.stdout.strip()) == (0, "{}")
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr
    found = topic.until_ended("full")
    assert [event.phase for event in decoded(found) if isinstance(event, PhaseStarted)] == [
        f"trainer_init.n{n}" for n in range(50)
    ]
    is_right(found)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_what_a_killed_process_told_is_delivered_by_the_next(
    spool: Path, env: dict[str, str], topic: Topic, number: signal.Signals
) -> None:
    code = """
        import os, signal, sys, ettwatch
        from ettwatch.delivery import courier
        courier.FIRST_S = 3600  # it is killed before anything is sent, on however slow a machine
        rec = ettwatch.init(job="killed")
        rec.training_started(position=0)
        rec.step(8)
        with rec.phase("wasted_training.evaluation"):
            os.kill(os.getpid(), int(sys.argv[1]))
            signal.pause()
    """
    process = start(code, spool, env, str(int(number)))
    process.communicate(timeout=120)
    assert process.returncode == -number
    python('import ettwatch\nettwatch.init(job="the next").end()', spool, env)
    found = topic.until(lambda found: {event["job"] for event in found} == {"killed", "the next"})
    assert [event["kind"] for event in found if event["job"] == "killed"] == [
        *["job_submitted", "attempt_started", "training_started", "progress", "phase_started"]
    ]
    assert not repetitions(found)
    python('import ettwatch\nettwatch.init(job="killed").end("failed")', spool, env)  # started again by hand
    found = topic.until_ended("killed")
    killed = [event for event in decoded(found) if event.job == "killed"]
    summary = timeline(killed).summary
    assert (summary.status, summary.attempts, summary.nof) == ("failed", 2, 2)
    assert "zombie" not in summary.flags


def test_a_stopped_process_goes_on(spool: Path, env: dict[str, str], topic: Topic) -> None:
    topic.read()
    process = start(TRAIN, spool, env, "150", "75")
    topic.until(lambda found: any(event["kind"] == "progress" for event in found))
    halted(process, 75)
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    go_on(process)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out.strip()) == (0, repr(sum(0.5**n for n in range(150))))
    found = topic.until_ended("a job 😀")
    assert boundary([event["kind"] for event in found]) == BOUNDARY
    is_right(found)


def test_processes_of_a_host_deliver_once(spool: Path, env: dict[str, str], topic: Topic) -> None:
    code = """
        import sys, time, ettwatch
        rec = ettwatch.init(job="many", rank=int(sys.argv[1]), attempt=0)
        for n in range(20):
            with rec.phase("trainer_init.pre_train"): time.sleep(0.05)
        rec.end()
    """
    ranks = [start(code, spool, env, str(rank)) for rank in range(6)]
    for rank in ranks:
        assert rank.communicate(timeout=120)[1] == ""
    found = topic.until(lambda found: [event["kind"] for event in found].count("phase_ended") >= 6 * 20)
    assert not repetitions(found)
    assert in_order(found)
    assert not waiting(spool)


def test_a_forked_child_is_heard_and_its_parent_too(spool: Path, env: dict[str, str], topic: Topic) -> None:
    code = """
        import os, time, ettwatch
        rec = ettwatch.init(job="forks")
        with rec.phase("trainer_init.before"): time.sleep(1)   # connected by now
        pid = os.fork()
        if pid == 0:
            with rec.phase("trainer_init.child"): time.sleep(0.2)
            os._exit(0)
        os.waitpid(pid, 0)
        with rec.phase("trainer_init.after"): pass
        rec.end()
    """
    done = python(code, spool, {**env, "PYTHONWARNINGS": "ignore::DeprecationWarning"})
    assert (done.returncode, done.stderr) == (0, "")
    found = topic.until(lambda found: [event["kind"] for event in found].count("phase_ended") >= 3)
    phases = [event.phase for event in decoded(found) if isinstance(event, PhaseStarted)]
    assert phases == ["trainer_init.before", "trainer_init.child", "trainer_init.after"]


def test_under_a_launcher_it_is_the_launcher_that_delivers(spool: Path, env: dict[str, str], topic: Topic) -> None:
    code = """
        import fcntl, glob, os, sys, time, ettwatch
        def led():
            for path in glob.glob(os.environ["ETTWATCH_SPOOL"] + "/.kafka.*.lock"):
                with open(path, "r+") as file:
                    try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError: return True
        while not led(): time.sleep(0.01)  # the launcher leads
        rec = ettwatch.init()
        with rec.phase("trainer_init.pre_train"): time.sleep(1.5)
        print("kafka" in sys.modules)
    """
    launched = subprocess.run(
        [
            sys.executable,
            "-m",
            "ettwatch.cli",
            "run",
            "--job",
            "led",
            "--",
            sys.executable,
            "-c",
            textwrap.dedent(code),
        ],
        env=environment(spool, env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (launched.returncode, launched.stdout, launched.stderr) == (0, "False\n", "")
    found = topic.until_ended("led")
    assert {"attempt_started", "phase_started", "phase_ended", "attempt_ended"} <= {event["kind"] for event in found}
    assert not repetitions(found)


def test_the_producer_is_idempotent_waits_for_all_copies_and_compresses(env: dict[str, str], topic: Topic) -> None:
    producer = Producer(Brokers(env))
    config = producer._producer.config
    assert (config["enable_idempotence"], config["acks"], config["compression_type"]) == (True, -1, "gzip")
    line = b'{"v":1,"id":"1","kind":"heartbeat","ts":1,"job":"j","pad":"' + b"x" * 50_000 + b'"}'
    assert producer.send([Record(b"j", [line])]) == [True]
    producer.close()
    topic.until(lambda found: found)
    assert [(key, [event["id"] for event in told]) for key, told in topic.records] == [("j", ["1"])]


def test_a_wrong_login_costs_nothing_and_is_said_without_the_password(way: tuple[Road, Cluster], spool: Path) -> None:
    env = {
        "ETTWATCH_KAFKA": way[1].guarded,
        "ETTWATCH_KAFKA_SECURITY": "SASL_PLAINTEXT",
        "ETTWATCH_KAFKA_USER": "nobody",
        "ETTWATCH_KAFKA_PASSWORD": "hush-hush",
        "ETTWATCH_EXIT_S": "60",
    }
    done = python(TRAIN, spool, env)
    assert (done.returncode, done.stdout.strip()) == (0, WEIGHT)
    assert "do not let 'nobody' in" in done.stderr
    assert "hush-hush" not in done.stderr
    assert "Traceback" not in done.stderr
    assert waiting(spool)


def test_a_topic_that_is_not_there_is_not_made(way: tuple[Road, Cluster], spool: Path, env: dict[str, str]) -> None:
    done = python(TRAIN, spool, {**env, "ETTWATCH_TOPIC_PREFIX": "no-such"})
    assert (done.returncode, done.stdout.strip()) == (0, WEIGHT)
    assert "no-such.events" in done.stderr
    assert "Traceback" not in done.stderr
    assert waiting(spool)
