"""Sends many records at once, and returns when every one of them is safe."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

__all__ = ["Out", "SendFailed", "Sender", "insist"]

_BATCH_BYTES: Final = 1 << 20
_REQUEST_BYTES: Final = 10 << 20
_PAUSES_S: Final = (0.5, 10.0)


class Out(NamedTuple):
    """A record to send."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


class SendFailed(Exception):
    """Some records may not have arrived; all of them may be sent again."""


class Sender:
    """A producer that keeps the order within each partition. For one task at a time.

    Args:
        settings: Of an AIOKafkaProducer: addresses and login.
        timeout_s: How long the brokers may take to acknowledge.
    """

    def __init__(self, settings: dict[str, Any], timeout_s: float = 30) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._producer: AIOKafkaProducer | None = None

    async def send(self, records: Iterable[Out]) -> dict[tuple[str, int], int]:
        """Send records; return the offset of the last one in each partition of each topic.

        Raises:
            SendFailed: The brokers did not acknowledge all of them.
        """
        try:
            producer = await self._started()
            last: dict[tuple[str, int], int] = {}
            for place, future, count in await self._enqueue(producer, records):
                metadata = await future
                last[place] = metadata.offset + count - 1
            return last
        except (KafkaError, OSError, TimeoutError) as error:
            # After a failure an idempotent producer does not know what arrived: the next one is a new one.
            await self.close()
            raise SendFailed(f"{type(error).__name__}: {error}") from error

    async def _enqueue(
        self, producer: AIOKafkaProducer, records: Iterable[Out]
    ) -> list[tuple[tuple[str, int], Awaitable[Any], int]]:
        """Hand them over in batches."""
        batches: dict[tuple[str, int], list[Any]] = {}
        now_ms = int(time.time() * 1000)
        for record in records:
            place = record.topic, record.partition
            some = batches.setdefault(place, [])
            args = {"timestamp": now_ms, "key": record.key, "value": record.value, "headers": list(record.headers)}
            if not some or some[-1].append(**args) is None:
                some.append(producer.create_batch())
                some[-1].append(**args)
        sent = []
        for place, some in batches.items():
            for batch in some:
                count = batch.record_count()
                sent.append((place, await producer.send_batch(batch, place[0], partition=place[1]), count))
        return sent

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **self._settings,
                acks="all",
                enable_idempotence=True,
                compression_type="zstd",
                linger_ms=0,
                max_batch_size=_BATCH_BYTES,
                max_request_size=_REQUEST_BYTES,
                request_timeout_ms=int(self._timeout_s * 1000),
            )
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            self._producer = producer
        return self._producer

    async def close(self) -> None:
        """Let go of the connections."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                await asyncio.wait_for(producer.stop(), 5)


async def insist(
    sender: Sender,
    records: Sequence[Out],
    go_on: Callable[[], Awaitable[bool]],
    tell: Callable[[str | None], None],
    sleep: Callable[[float], Awaitable[None]],
) -> dict[tuple[str, int], int] | None:
    """Send records until the brokers have them all, however often that takes.

    Args:
        sender: Sends.
        records: All of them are sent again where one failed.
        go_on: Asked before each try.
        tell: Told what is wrong after each failure, and None when it passed.
        sleep: Waits.

    Returns:
        The offset of the last one in each partition of each topic; None if it was not to go on.
    """
    pause, longest = _PAUSES_S
    while await go_on():
        try:
            last = await sender.send(records)
        except SendFailed as error:
            tell(f"the brokers do not take what is sent ({error}); it is sent again until they do")
            await sleep(pause)
            pause = min(2 * pause, longest)
        else:
            tell(None)
            return last
    return None
