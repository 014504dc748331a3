"""`ettwatch sink` as a process, between a real Kafka and ClickHouse: whatever fails, the same rows come out."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from ettwatch_clickhouse import Store, migrate
from ettwatch_schemas import DeadLetter, read_letter
from sink.feed import PARTITIONS, ROUNDS, Feed, create_topics
from support.flaky import Fault
from support.kafka_native import Reaper
from support.pipeline_house import House
from support.pipeline_lag import Group, read_topic
from support.pipeline_programs import Program, until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

WAIT_S = 90
# All that it reads; the test sends nothing to the last of them.
TOPICS = ("jobs", "attempts", "segments", "phases", "accepted", "windows")
PLACES = len(TOPICS) * PARTITIONS


@pytest.fixture(scope="module")
def reaper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reaper]:
    found = Reaper(tmp_path_factory.mktemp("reaped"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, reaper: Reaper) -> Iterator[House]:
    with House(tmp_path_factory.mktemp("house"), reaper) as found:
        store = found.store()
        migrate(store)
        store.close()
        yield found


class Scene:
    """Topics of its own, some jobs, and sinks."""

    def __init__(self, bootstrap: str, prefix: str, house: House, reaper: Reaper, folder: Path) -> None:
        self.house = house
        self.feed = Feed(bootstrap, create_topics(bootstrap, prefix), [f"{prefix}-{n}" for n in range(30)])
        self.group = Group(bootstrap, f"{prefix}-sink", [f"{prefix}.{topic}" for topic in TOPICS])
        self.sinks: list[Program] = []
        self._words = ["sink", "--bootstrap", bootstrap, "--prefix", prefix, "--partitions", str(PARTITIONS)]
        self._words += ["--clickhouse", house.url]
        self._folder, self._reaper = folder, reaper

    def sink(self, *options: str, ready: bool = True) -> Program:
        """Start one more sink."""
        name = f"sink-{len(self.sinks)}"
        made = Program(name, self._folder, [*self._words, *options], {}, self._reaper)
        self.sinks.append(made)
        made.start(ready=ready)
        return made

    def settled(self) -> None:
        """Wait until everything is committed, then compare."""
        until("the group has committed everything", lambda: self.group.behind() == 0, WAIT_S)
        self.right()

    def right(self) -> None:
        store = self.house.store()
        try:
            assert self.feed.missing(store) == []
        finally:
            store.close()

    def store(self) -> Store:
        return self.house.store()

    def close(self) -> None:
        for sink in self.sinks:
            if sink.started:
                print(sink.name, sink.get("/readyz"), sink.get("/metrics")[1], sep="\n")  # seen where a test fails
            print(sink.tail())
            sink.close()
        self.group.close()
        self.feed.close()
        self.house.flaky.fault = Fault.NONE
        self.house.flaky.release()


@pytest.fixture
def scene(kafka: str, prefix: str, house: House, reaper: Reaper, tmp_path: Path) -> Iterator[Scene]:
    found = Scene(kafka, prefix, house, reaper, tmp_path)
    yield found
    found.close()


def test_undisturbed_and_ended_in_good_order(scene: Scene) -> None:
    sink = scene.sink("--seconds", "30")
    told = [line for line in sink.get("/metrics")[1].splitlines() if line.startswith("# HELP ettwatch_sink_")]
    assert len(told) >= 14
    assert all(len(line.split(" ", 3)) == 4 for line in told)
    scene.feed.send()
    until("all is read", lambda: read(sink) == scene.feed.sent, WAIT_S)
    assert sink.stop() == 0  # long before the batch was due
    assert scene.group.behind() == 0
    scene.right()


def read(sink: Program) -> float:
    return sum(value for name, value in sink.metrics().items() if name.startswith("ettwatch_sink_records_total"))


def test_killed_in_the_middle_of_inserts(scene: Scene) -> None:
    sink = scene.sink()
    scene.feed.send((150, 220), times=2)  # a worker that crashed sends once more
    for fault, second in ((Fault.HELD_BEFORE, 1_000), (Fault.HELD_AFTER, 4_000)):
        with scene.house.flaky.being(fault):
            scene.feed.send((second,), times=2)
            assert scene.house.flaky.held.wait(WAIT_S)
            sink.kill()
        sink.start()
    scene.settled()


def test_clickhouse_away_for_a_while(scene: Scene) -> None:
    sink = scene.sink("--rows", "100")
    scene.feed.send((150,))
    until("all is committed", lambda: scene.group.behind() == 0, WAIT_S)
    scene.house.kill()
    try:
        scene.feed.send((220,))
        until("it says so", lambda: sink.get("/readyz")[0] == 503, WAIT_S)
        scene.feed.send((1_000, 4_000))  # behind a batch that is being written: more than one holds
        until("it reads no more", lambda: sink.metrics().get("ettwatch_sink_paused") == 1, WAIT_S)
        time.sleep(12)  # longer than the session of a member that is silent
        assert "cannot insert" in sink.get("/readyz")[1] or "cannot run" in sink.get("/readyz")[1]
        assert sink.get("/healthz") == (200, "ok\n")
        figures = sink.metrics()
        assert figures["ettwatch_sink_partitions"] == PLACES
        assert figures["ettwatch_sink_held_rows"] < 1_000
    finally:
        scene.house.start()
    scene.settled()
    assert sink.get("/readyz") == (200, "ok\n")
    assert "taken" not in sink.tail()
    assert sink.log.read_text().count("partitions to read") == 1  # it was a member all the time


def test_clickhouse_answers_wrongly(scene: Scene) -> None:
    sink = scene.sink("--timeout", "3")
    flaky = scene.house.flaky
    flaky.delay_s = 5
    for fault, second in zip((Fault.BUSY, Fault.BROKEN, Fault.LOST, Fault.LATE), ROUNDS, strict=True):
        tries, committed = retries(sink), scene.group.committed()
        with flaky.being(fault):
            scene.feed.send((second,))
            until(f"it tries again: {fault.value}", partial(tried, sink, tries + 3), WAIT_S)
            assert scene.group.committed() == committed
        until("all is committed", lambda: scene.group.behind() == 0, WAIT_S)
    scene.right()


def tried(sink: Program, times: float) -> bool:
    return retries(sink) >= times


def retries(sink: Program) -> float:
    return sink.metrics().get("ettwatch_sink_retries_total", 0)


def test_two_share_the_partitions_and_one_leaves(scene: Scene) -> None:
    first, second = scene.sink(), scene.sink()
    scene.feed.send((150,))
    until("both read", lambda: shares([first, second]) == [PLACES // 2] * 2, WAIT_S)
    scene.feed.send((220,))
    assert second.stop() == 0
    scene.feed.send((1_000,))
    third = scene.sink()
    first.kill()
    scene.feed.send((4_000,))
    scene.settled()
    assert shares([third]) == [PLACES]


def shares(sinks: list[Program]) -> list[float]:
    return [sink.metrics().get("ettwatch_sink_partitions", 0) for sink in sinks]


def test_what_cannot_be_read_is_put_aside(scene: Scene, kafka: str) -> None:
    called = scene.feed.called
    scene.feed.put(called.jobs, b"\xff no update")
    scene.feed.put(called.segments, b'{"v": 2}')
    scene.feed.put(called.accepted, b"nonsense\n[]", None)
    scene.feed.send()
    sink = scene.sink()
    scene.settled()
    letters = [
        read_letter(message.key(), message.value(), cast(Any, message.headers()))
        for message in read_topic(kafka, called.dlq)
    ]
    assert sorted((each.topic, each.code, each.value, each.index) for each in letters) == sorted(
        [
            (called.accepted, "bad_accepted", b"nonsense\n[]", 0),
            (called.accepted, "bad_accepted", b"nonsense\n[]", 1),
            (called.jobs, "bad_update", b"\xff no update", None),
            (called.segments, "bad_update", b'{"v": 2}', None),
        ]
    )
    assert sink.metrics()[f'ettwatch_sink_refused_total{{topic="{called.accepted}"}}'] == 2


def letter(message: Any) -> DeadLetter:
    return read_letter(message.key(), message.value(), message.headers())


def test_once_reads_to_the_end_and_exits(scene: Scene) -> None:
    scene.feed.send((150, 220))
    for rounds in ((), (1_000, 4_000)):
        scene.feed.send(rounds)
        sink = scene.sink("--once", ready=False)
        assert ended(sink) == 0, sink.tail()
        assert scene.group.behind() == 0
    scene.right()


def ended(sink: Program) -> int:
    process = sink._process
    assert process is not None
    code = process.wait(WAIT_S)
    sink._over()
    return code
