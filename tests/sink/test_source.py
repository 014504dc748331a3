"""The member of the consumer group, on a real broker."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

from ettwatch_app.clickhouse import ClickHouseAccess
from ettwatch_app.sink.batch import Place
from ettwatch_app.sink.settings import Limits, SinkSettings, inputs
from ettwatch_app.sink.source import Source
from ettwatch_faust import Access, TopicSettings, names
from sink.feed import create_topics

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.usefixtures("swept"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <s.*[sS]ocket fd:pytest.PytestUnraisableExceptionWarning"),
]

SHORT = Limits(poll_s=0.001)
PARTITIONS = 4
# Of all topics that the sink reads.
PLACES = PARTITIONS * len(inputs(names("any")))


class Owner:
    def __init__(self) -> None:
        self.told: list[int | str] = []
        self.committed: list[dict[Place, int]] = []
        self.source: Source
        self.on_revoked: Callable[[], None] = lambda: None

    def assigned(self, places: list[Place]) -> None:
        self.told.append(len(places))

    def revoked(self, *, lost: bool) -> None:
        self.told.append("lost" if lost else "revoked")
        self.on_revoked()

    def answer(self, offsets: Mapping[Place, int], error: Exception | None) -> None:
        assert error is None
        self.committed.append(dict(offsets))


def opened(bootstrap: str, prefix: str, owner: Owner) -> Source:
    clickhouse = ClickHouseAccess.read({}, "http://127.0.0.1:9")
    settings = SinkSettings(Access.read({}, bootstrap), TopicSettings(prefix, PARTITIONS, 1), clickhouse)
    owner.source = Source(settings, inputs(create_topics(bootstrap, prefix)), owner, owner.answer)
    return owner.source


def until(true: Callable[[], bool], work: Callable[[], object], seconds: float = 90) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        work()
    return true()


def interrupt(consumer: Any) -> None:
    """Let the member find that the partitions of a topic changed, and a call end before the new join does."""
    coordinator = consumer._coordinator
    coordinator._assignment_snapshot = {}
    consumer.poll(0)
    # The join ends meanwhile.
    assert until(lambda: coordinator._join_task is not None and coordinator._join_task.is_done, lambda: time.sleep(0.1))
    time.sleep(1)
    assert coordinator.rejoining


def test_the_client_forgets_a_join_that_takes_longer_than_a_call(kafka: str, prefix: str) -> None:
    """If this fails the fault is mended: then the source need not mind it any more."""
    called = create_topics(kafka, prefix)
    consumer = KafkaConsumer(called.jobs, bootstrap_servers=kafka, group_id=f"{prefix}-any", enable_auto_commit=False)
    try:
        # It shares out what it knows of the topic when it joins: nothing, if that has not come yet.
        assert until(lambda: consumer.partitions_for_topic(called.jobs), lambda: time.sleep(0.1))
        assert until(lambda: len(consumer.assignment()) == 4, lambda: consumer.poll(100))
        interrupt(consumer)
        until(lambda: False, lambda: consumer.poll(100), 3)
        assert consumer._coordinator.rejoining
    finally:
        consumer.close()


def test_the_source_does_not(kafka: str, prefix: str) -> None:
    owner = Owner()
    source = opened(kafka, prefix, owner)
    try:
        # On a slow machine there may be other changes before.
        assert until(lambda: owner.told[-1:] == [PLACES], lambda: source.read(SHORT))
        owner.told.clear()
        interrupt(source._consumer)
        assert until(lambda: owner.told[-2:] == ["revoked", PLACES], lambda: source.read(SHORT))
    finally:
        source.close()


def test_what_is_safe_is_committed_before_the_partitions_are_given_away(kafka: str, prefix: str) -> None:
    first, second = Owner(), Owner()
    source = opened(kafka, prefix, first)
    here = Place(f"{prefix}.jobs", 0)
    producer = KafkaProducer(bootstrap_servers=kafka)
    for number in range(10):
        producer.send(here.topic, key=b"k", value=b"%d" % number, partition=0).get(90)
    producer.close()
    records: list[Any] = []
    assert until(lambda: len(records) == 10, lambda: records.extend(source.read(SHORT)))
    assert (records[0].place, [record.value for record in records]) == (here, [b"%d" % n for n in range(10)])
    first.on_revoked = lambda: source.commit({here: 7})

    shared = threading.Event()

    def join() -> None:
        other = opened(kafka, prefix, second)
        # It may learn of its share before the first one does, and must not leave before both have.
        until(lambda: PLACES // 2 in second.told and shared.is_set(), lambda: other.read(SHORT))
        other.close()

    thread = threading.Thread(target=join)
    thread.start()
    try:
        # On a slow machine there may be other changes before.
        assert until(lambda: PLACES // 2 in first.told, lambda: source.read(SHORT))
        shared.set()
        assert "revoked" in first.told[: first.told.index(PLACES // 2)]
        assert until(lambda: first.committed[:1] == [{here: 7}], lambda: source.read(SHORT))
    finally:
        shared.set()
        thread.join(90)
        source.close()
    asker = KafkaConsumer(bootstrap_servers=kafka, group_id=f"{prefix}-sink", metrics_enabled=False)
    assert asker.committed(TopicPartition(*here)) == 7
    asker.close()


def test_paused_it_reads_nothing_and_stays_a_member(kafka: str, prefix: str) -> None:
    owner = Owner()
    source = opened(kafka, prefix, owner)
    producer = KafkaProducer(bootstrap_servers=kafka)
    try:
        assert until(lambda: owner.told[-1:] == [PLACES], lambda: source.read(SHORT))
        owner.told.clear()
        source.pause(True)
        producer.send(f"{prefix}.jobs", key=b"k", value=b"x", partition=1).get(90)
        records: list[Any] = []
        assert not until(lambda: bool(records), lambda: records.extend(source.read(SHORT)), 2)
        source.pause(False)
        assert until(lambda: len(records) == 1, lambda: records.extend(source.read(SHORT)))
        assert owner.told == []
        assert source.end(records[0].place) == source.position(records[0].place) == 1
        assert source.ends([f"{prefix}.jobs"]) == {Place(f"{prefix}.jobs", n): int(n == 1) for n in range(4)}
        source.commit_now({records[0].place: 1}, 60)
        assert owner.committed == [{records[0].place: 1}]
    finally:
        producer.close()
        source.close()
