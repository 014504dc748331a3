"""The Kafka that the tests run on: it is a real one, and it dies and comes back as one."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ettwatch_schemas import encode_event
from ettwatch_sim import random_jobs
from support.kafka import Cluster
from support.kafka_records import leader_of, make_topic, produce, read, wait_for_copies, wait_for_leader
from support.pipeline_programs import until

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.usefixtures("swept"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <s.*[sS]ocket fd:pytest.PytestUnraisableExceptionWarning"),
]

EVENTS = [(event.job.encode(), encode_event(event)) for event in random_jobs(3, 3)]
LEFT_BEHIND = """
import sys
from support.kafka import Cluster
cluster = Cluster()
print(cluster.bootstrap, flush=True)
sys.stdin.read()
"""


def test_an_event_comes_back_byte_by_byte_with_its_key(kafka: str, prefix: str) -> None:
    make_topic(kafka, prefix)
    produce(kafka, prefix, EVENTS)
    assert read(kafka, prefix, len(EVENTS)) == EVENTS


def test_a_killed_broker_comes_back_with_what_it_acknowledged(own: Cluster, prefix: str) -> None:
    make_topic(own.bootstrap, prefix)
    produce(own.bootstrap, prefix, EVENTS)
    own.kill(0)
    assert not answers(own.bootstrap)
    own.start(0)
    assert read(own.bootstrap, prefix, len(EVENTS)) == EVENTS


def test_a_stopped_broker_comes_back_with_its_data(own: Cluster, prefix: str) -> None:
    make_topic(own.bootstrap, prefix)
    produce(own.bootstrap, prefix, EVENTS[:10])
    own.stop(0)
    assert not answers(own.bootstrap)
    own.start(0)
    assert read(own.bootstrap, prefix, 10) == EVENTS[:10]


def test_of_three_brokers_one_may_die(three: Cluster, prefix: str) -> None:
    make_topic(three.bootstrap, prefix, replication=3, min_insync=2)
    half = len(EVENTS) // 2
    produce(three.bootstrap, prefix, EVENTS[:half])
    wait_for_copies(three.bootstrap, prefix, 3)
    dead = leader_of(three.bootstrap, prefix)
    others = ",".join(address for i, address in enumerate(three.bootstrap.split(",")) if i != dead)
    three.kill(dead)
    try:
        wait_for_leader(others, prefix, other_than=dead)
        produce(others, prefix, EVENTS[half:])
        assert read(others, prefix, len(EVENTS)) == EVENTS
    finally:
        three.start(dead)
    assert read(three.bootstrap.split(",")[dead], prefix, len(EVENTS)) == EVENTS


def test_brokers_end_with_a_test_run_that_is_killed(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", LEFT_BEHIND],
        env=os.environ | {"PYTHONPATH": tests, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        bootstrap = run.stdout.readline().strip()
        assert answers(bootstrap)
        run.send_signal(signal.SIGKILL)
    # The watching process may be slow to wake up, or even to start. It ends the brokers first, then removes their data.
    until("its data is removed", lambda: not any(tmp_path.iterdir()), 120)
    # A broker that only lost its data ends by itself, later.
    until("it is gone", lambda: not answers(bootstrap), 15)


def answers(bootstrap: str) -> bool:
    host, port = bootstrap.rsplit(":", 1)
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=2):
        return True
    return False
