"""Which record comes next in a partition, by asking the brokers past Faust's machinery."""

import contextlib
import time
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

__all__ = ["Finder"]

_WAIT_S: Final = 5.0
_LOOK_MS: Final = 250


class Finder:
    """A consumer without a group, connected when it is needed first. For one task at a time.

    Args:
        settings: Of an AIOKafkaConsumer: addresses and login.
        topic: Where it looks.
        wait_s: How long it waits for a record.
    """

    def __init__(self, settings: dict[str, Any], topic: str, wait_s: float = _WAIT_S) -> None:
        self._settings = settings
        self._topic = topic
        self._wait_s = wait_s
        self._consumer: AIOKafkaConsumer | None = None

    async def first(self, partition: int, offset: int) -> int | None:
        """Return the offset of the first record from `offset` on, as far as is known: before it there is none.

        Offsets may hold no record: the end of a transaction takes one. None if nothing comes, or the brokers do not
        tell.
        """
        place = TopicPartition(self._topic, partition)
        until_s = time.monotonic() + self._wait_s
        try:
            consumer = await self._started()
            consumer.assign([place])
            consumer.seek(place, offset)
            while time.monotonic() < until_s:
                found = await consumer.getmany(place, timeout_ms=_LOOK_MS, max_records=1)
                if records := found.get(place):
                    return int(records[0].offset)
                if (position := await consumer.position(place)) > offset:
                    return int(position)
        except (KafkaError, OSError, TimeoutError):
            await self.close()
        return None

    async def _started(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                **self._settings, group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
            )
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
            self._consumer = consumer
        return self._consumer

    async def close(self) -> None:
        """Let go of the connections."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                await consumer.stop()
