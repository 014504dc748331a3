"""Reads partitions of the state topic, past Faust's machinery."""

import contextlib
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

__all__ = ["StateReader", "StateRecord"]

_WAIT_MS: Final = 500

StateRecord = tuple[bytes, bytes | None]
"""Key and value."""


class StateReader:
    """A consumer without a group, connected when it is needed first. For one task at a time.

    Args:
        settings: Of an AIOKafkaConsumer: addresses and login.
        topic: The state topic.
    """

    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._consumer: AIOKafkaConsumer | None = None

    async def read(self, partition: int, offset: int | None) -> tuple[list[StateRecord], int]:
        """Return the records from an offset (None: the first) to the present end, and the offset to go on from.

        Raises:
            KafkaError, OSError, TimeoutError: The brokers do not tell; it may be tried again.
        """
        place = TopicPartition(self._topic, partition)
        try:
            consumer = await self._started()
            consumer.assign([place])
            first = (await consumer.beginning_offsets([place]))[place]
            end = (await consumer.end_offsets([place]))[place]
            at = first if offset is None else max(offset, first)
            consumer.seek(place, at)
            out: list[StateRecord] = []
            while at < end:
                found = await consumer.getmany(place, timeout_ms=_WAIT_MS)
                out += [(record.key or b"", record.value) for record in found.get(place, ())]
                at = await consumer.position(place)
            return out, at
        except (KafkaError, OSError, TimeoutError):
            await self.close()
            raise

    async def close(self) -> None:
        """Let go of the connections."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                await consumer.stop()

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
