"""Alerts on a real Kafka: every state in order, under the key of the alert, with an id that tells a doubled one."""

import json
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ettwatch_faust import Access, TopicSettings, admin, names, plan
from ettwatch_monitor.alerts.deliver import Plan, TopicChannel
from support.delivery import HOUR, MINUTE, T0, Killed, delivering, firing, resolved

pytestmark = pytest.mark.kafka

PLAN = Plan(updates=True, mutes=False, batch=100)


@pytest.fixture
def topic(kafka: str, prefix: str) -> str:
    called = names(prefix).alerts
    (spec,) = [spec for spec in plan(TopicSettings(prefix, 1, 1)) if spec.name == called]
    with admin(Access.read({}, kafka)) as client:
        client.create_topics(
            {called: {"num_partitions": spec.partitions, "replication_factor": 1, "configs": spec.configs()}}
        )
        client.wait_for_topics([called])
    return called


def read(kafka: str, topic: str, count: int) -> list[Any]:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        topic, bootstrap_servers=kafka, auto_offset_reset="earliest", consumer_timeout_ms=60_000, group_id=None
    )
    found = []
    for record in consumer:
        found.append(record)
        if len(found) == count:
            break
    consumer.close()
    return found


def test_states_arrive_in_order_and_a_crash_doubles_under_the_same_id(tmp_path: Path, kafka: str, topic: str) -> None:
    class Crashes(TopicChannel):
        crash = True

        def send(self, messages: Any, now: int) -> None:
            super().send(messages, now)
            if Crashes.crash:
                Crashes.crash = False
                raise Killed

    def channel() -> TopicChannel:
        return Crashes("log", PLAN, Access.read({}, kafka), topic, timeout_s=60)

    with delivering(tmp_path / "outbox", channel()) as delivery:
        delivery.put(firing("a"), T0)
        delivery.put(firing("b"), T0)
        with pytest.raises(Killed):
            delivery.deliver_all(T0)
    with delivering(tmp_path / "outbox", channel()) as delivery:
        delivery.put(resolved(firing("a"), T0 + HOUR), T0 + HOUR)
        delivery.deliver_all(T0 + HOUR)
        assert delivery.health()[0][1:5] == (0, None, None, None)
    records = read(kafka, topic, 5)
    told = [(record.key.decode(), json.loads(record.value)["status"]) for record in records]
    assert told == [("a", "firing"), ("b", "firing")] * 2 + [("a", "resolved")]
    ids = [dict(record.headers)["id"].decode() for record in records]
    assert ids[:2] == ids[2:4]
    assert len(set(ids)) == 3
    assert [json.loads(record.value)["id"] for record in records] == ids


def test_a_broker_that_is_away_loses_nothing(tmp_path: Path, kafka: str, topic: str) -> None:
    there = TopicChannel("log", PLAN, Access.read({}, kafka), topic, timeout_s=60)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        away = TopicChannel("log", PLAN, Access.read({}, where), topic, timeout_s=1)
        with delivering(tmp_path / "outbox", away) as delivery:
            delivery.put(firing("a"), T0)
            begun = time.monotonic()
            delivery.deliver_all(T0)
            assert time.monotonic() - begun < 60
            error = delivery.health()[0].error
            assert error is not None
            assert f"cannot write to {topic} at {where}" in error
            delivery.reconfigure([there], (), T0)
            delivery.deliver_all(T0 + MINUTE)
    assert [record.key for record in read(kafka, topic, 1)] == [b"a"]


def test_a_topic_that_is_missing_or_a_message_that_is_too_large(tmp_path: Path, kafka: str, topic: str) -> None:
    missing = TopicChannel("log", PLAN, Access.read({}, kafka), f"{topic}.missing", timeout_s=2)
    there = TopicChannel("log", PLAN, Access.read({}, kafka), topic, timeout_s=60)
    with delivering(tmp_path / "outbox", missing) as delivery:
        delivery.put(replace(firing("large"), body="x" * (11 << 20)), T0)
        delivery.put(firing("small"), T0)
        delivery.reconfigure([there], (), T0)
        delivery.deliver_all(T0)
        health = delivery.health()[0]
        assert (health.refused, health.waiting) == (1, 0)
    assert [record.key for record in read(kafka, topic, 1)] == [b"small"]
