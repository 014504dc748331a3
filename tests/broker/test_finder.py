"""Which record comes first from an offset on, on real brokers, where offsets without records are."""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from ettwatch_faust.finder import Finder

pytestmark = pytest.mark.kafka


async def filled(servers: dict[str, Any], topic: str) -> None:
    """Two transactions of two records each, whose ends take offsets 2 and 5."""
    admin = AIOKafkaAdminClient(**servers)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 2, 1)])
    await admin.close()
    producer = AIOKafkaProducer(**servers, transactional_id=topic)
    await producer.start()
    for _ in range(2):
        async with producer.transaction():
            for _ in range(2):
                await producer.send_and_wait(topic, b"x", partition=0)
    await producer.stop()


def test_the_first_record_from_an_offset_on_or_where_it_may_be(kafka: str, prefix: str) -> None:
    servers = {"bootstrap_servers": kafka}
    topic = f"{prefix}.found"

    async def main() -> list[int | None]:
        await filled(servers, topic)
        patient, hasty = Finder(servers, topic, wait_s=90), Finder(servers, topic, wait_s=2)
        try:
            found = [await patient.first(0, offset) for offset in (0, 1, 2, 3, 5, 99)]
            return [*found, await hasty.first(0, 6), await hasty.first(1, 0)]
        finally:
            for finder in (patient, hasty, hasty):
                await finder.close()

    assert asyncio.run(main()) == [0, 1, 3, 3, 6, 0, None, None]


def test_brokers_that_are_away_tell_nothing() -> None:
    finder = Finder({"bootstrap_servers": ["127.0.0.1:1"], "request_timeout_ms": 1_000}, "topic", wait_s=1)
    assert asyncio.run(finder.first(0, 0)) is None
