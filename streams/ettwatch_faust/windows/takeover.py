"""Taking partitions over: claims them, reads their state, and finds where to go on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from aiokafka.errors import KafkaError

from ettwatch_core.ownership import Owners
from ettwatch_core.windows import Recovered, Sizes, recover
from ettwatch_faust.place import Place
from ettwatch_faust.ports import Group
from ettwatch_faust.sender import Out
from ettwatch_faust.topics import Names
from ettwatch_faust.windows.merge_lane import MergeLane
from ettwatch_faust.windows.metrics import WindowsMetrics
from ettwatch_faust.windows.owned import Owned
from ettwatch_faust.windows.source_lane import SourceLane

__all__ = ["Reads", "TakeOver"]

_LOG: Final = logging.getLogger(__name__)
_PAUSE_S: Final = 1.0


class Reads(Protocol):
    """Reads the state topic."""

    async def read(self, partition: int, offset: int | None) -> tuple[list[tuple[bytes, bytes | None]], int]:
        """Return records from an offset to the end, and the offset to go on from."""


class TakeOver:
    """Takes partitions over.

    Args:
        names: The topics.
        sizes: The windows.
        wait_us: How long after its end a window is told first.
        groups: The consumer group, by topic.
        reader: Of the state.
        send: Sends lists of records, each after the one before; False where the partitions went meanwhile.
        metrics: The figures.
        clock: The time (µs).
    """

    def __init__(
        self,
        names: Names,
        sizes: Sizes,
        wait_us: int,
        groups: Mapping[str, Group],
        reader: Reads,
        send: Callable[[list[list[Out]]], Awaitable[bool]],
        metrics: WindowsMetrics,
        clock: Callable[[], int],
    ) -> None:
        self._names = names
        self._sizes = sizes
        self._wait_us = wait_us
        self._groups = groups
        self._reader = reader
        self._send = send
        self._metrics = metrics
        self._clock = clock

    async def source(self, partition: int, partitions: int, generation: int, owners: Owners) -> Owned | None:
        """Return stage 1 of a partition; None where it went meanwhile. Raises LedgerError, and what reading raises."""
        lane = SourceLane(self._names, partition, self._sizes, owners, partitions, self._wait_us)
        records, offset = await self._read(partition, None)
        if not await self._send(lane.claim(recover(1, records), generation, self._clock())):
            return None
        # What an owner before told until then it has noted before it told it.
        more, _ = await self._read(partition, offset)
        lane.begin(recover(1, [*records, *more]), self._clock())
        topics = (self._names.jobs, self._names.attempts, self._names.segments)
        return await self._placed(Owned(lane, 1), partition, topics)

    async def merger(self, partition: int, partitions: int, generation: int) -> Owned | None:
        """Return stage 2 of a partition; None where it went meanwhile. Raises LedgerError, and what reading raises."""
        lane = MergeLane(self._names, partition, self._sizes, partitions, self._wait_us)
        found: Recovered = recover(2, (await self._read(partition, None))[0])
        if not await self._send(lane.claim(found, generation)):
            return None
        lane.begin(found)
        return await self._placed(Owned(lane, 2), partition, (self._names.parts,))

    async def _read(self, partition: int, offset: int | None) -> tuple[list[Any], int]:
        while True:
            try:
                return await self._reader.read(partition, offset)
            except (KafkaError, OSError, TimeoutError) as error:
                self._metrics.retries.labels("state").inc()
                _LOG.warning("cannot read the state (%s); trying again", error, extra={"event": "cannot_read"})
                await asyncio.sleep(_PAUSE_S)

    async def _placed(self, owned: Owned, partition: int, topics: tuple[str, ...]) -> Owned:
        for topic in topics:
            group = self._groups[topic]
            _, first = await group.committed(partition)
            wanted = owned.lane.offsets.get(topic)
            if wanted is not None and wanted < first:
                self._metrics.lost_records.inc(first - wanted)
                _LOG.error(
                    "%d records of %s/%d were removed by retention before they were read",
                    *(first - wanted, topic, partition),
                    extra={"event": "records_lost", "partition": partition, "records": first - wanted},
                )
            owned.places[topic] = Place(max(first, wanted or 0))
        return owned
