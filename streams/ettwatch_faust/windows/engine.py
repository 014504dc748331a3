"""The work between Faust and the lanes of both stages: takes records in, tells what is due, writes snapshots.

In stage 1 a turn first notes which buckets it is about to tell, then tells them; in stage 2 it publishes windows. A
snapshot holds all that a lane knows, and where it reads on. So whoever goes on after a crash has an older state, reads
again what came after it, and tells anew whatever may have been told since.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from ettwatch_core.ownership import Owners
from ettwatch_core.windows import Sizes
from ettwatch_faust.place import Next
from ettwatch_faust.ports import Group
from ettwatch_faust.sender import Out, Sender, insist
from ettwatch_faust.topics import Names
from ettwatch_faust.windows.measure import measure
from ettwatch_faust.windows.merge_lane import MergeLane
from ettwatch_faust.windows.metrics import WindowsMetrics
from ettwatch_faust.windows.owned import Owned
from ettwatch_faust.windows.source_lane import SourceLane
from ettwatch_faust.windows.takeover import Reads, TakeOver

__all__ = ["WindowsEngine"]

_LOG: Final = logging.getLogger(__name__)
_BUDGET_S: Final = 0.5
"""Of one turn, for making windows; then others have their turn."""

_STUCK_S: Final = 10.0
"""When records wait and none came for so long they are asked for again."""


class WindowsEngine:
    """One process's work. For one event loop.

    Args:
        names: The topics.
        sizes: The windows.
        owners: Who owns which stage.
        groups: The consumer group, by topic: of jobs, attempts, segments and parts.
        reader: Of the state.
        sender: Sends.
        metrics: The figures.
        wait_us: How long after its end a window is told first.
        snapshot_s: How often the state of a partition is written.
        clock: The time in µs.
        monotonic: A monotonic clock (s).
        sleep: Waits.
    """

    def __init__(
        self,
        names: Names,
        sizes: Sizes,
        owners: Owners,
        groups: Mapping[str, Group],
        reader: Reads,
        sender: Sender,
        metrics: WindowsMetrics,
        *,
        wait_us: int,
        snapshot_s: float,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._names = names
        self._owners = owners
        self._groups = groups
        self._sender = sender
        self._metrics = metrics
        self._snapshot_s = snapshot_s
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._take_over = TakeOver(names, sizes, wait_us, groups, reader, self._send, metrics, clock)
        self._owned: dict[tuple[str, int], Owned] = {}
        self._seeks: dict[tuple[str, int], int] = {}
        self._working = asyncio.Lock()
        self._term = 0  # rises whenever partitions are taken away
        self._joined = False
        self.trouble: str | None = None
        """Why it cannot go on just now; None if it can."""

    # Ownership

    async def assign(self, stages: Mapping[int, list[int]], generation: int) -> None:
        """Take over partitions; they are all that it has. Raises LedgerError where a state cannot be read.

        Args:
            stages: The partitions of stage 1 and of stage 2.
            generation: Of the consumer group: rises with every change of owners.
        """
        self.drop()
        async with self._working:
            term = self._term
            count = await self._groups[self._names.jobs].partitions()
            for stage, partitions in stages.items():
                for partition in partitions:
                    owned = (
                        await self._take_over.source(partition, count, generation, self._owners)
                        if stage == 1
                        else await self._take_over.merger(partition, count, generation)
                    )
                    if term != self._term or owned is None:
                        return  # they went again meanwhile
                    # Not all at the same time.
                    owned.snapshot_s = self._monotonic() + self._snapshot_s * (0.5 + partition / count / 2)
                    self._owned |= {(topic, partition): owned for topic in owned.places}
                    # Only now: what came while nobody took it in has to come again.
                    for topic, place in owned.places.items():
                        await self._groups[topic].seek(partition, place.next)
            self._joined = True
        self._metrics.partitions.set(sum(map(len, stages.values())))
        _LOG.info("partitions taken over: %s", dict(stages), extra={"event": "assigned"})

    async def revoke(self, seconds: float) -> None:
        """Write the state of all partitions, if that is possible in time, and let go of them."""
        try:
            if self._joined:
                await asyncio.wait_for(self._leave(), seconds)
        except TimeoutError:
            _LOG.warning("no time to write the state before the partitions go", extra={"event": "revoked_unwritten"})
        self.drop()
        _LOG.info("partitions handed back", extra={"event": "revoked"})

    async def _leave(self) -> None:
        async with self._working:
            for owned in self._lanes():
                if owned.written != owned.offsets:
                    await self._write(owned)

    def drop(self) -> None:
        """Let go of all partitions as they are."""
        self._term += 1
        self._joined = False
        self._owned.clear()
        self._seeks.clear()
        self._metrics.partitions.set(0)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._sender.close()
        for group in self._groups.values():
            await group.close()

    @property
    def joined(self) -> bool:
        """Whether it has its share of the partitions, which may be none."""
        return self._joined

    def own(self, owners: Owners) -> None:
        """Have stages owned by others from now on."""
        self._owners = owners
        for owned in self._lanes():
            if isinstance(owned.lane, SourceLane):
                owned.lane.own(owners)

    # Records

    def take(self, message: Any) -> None:
        """Take in one record (an aiokafka ConsumerRecord)."""
        owned = self._owned.get((message.topic, message.partition))
        if owned is None:
            return
        place = owned.places[message.topic]
        verdict = place.judge(message.offset, self._monotonic())
        if verdict is Next.TAKE:
            place.stamp_s = message.timestamp / 1000
            owned.moved_s[message.topic] = self._monotonic()
            self._metrics.records.labels(message.topic).inc()
            if isinstance(owned.lane, SourceLane):
                owned.lane.take(message.topic, message.value, message.timestamp)
            else:
                owned.lane.take(message.value)
        elif verdict is Next.SEEK:
            self._seeks[(message.topic, message.partition)] = place.next
            self._metrics.gaps.inc()

    # Turns

    async def turn(self) -> None:
        """Tell what is due, and write the snapshots that are due."""
        async with self._working:
            begun_s, term = self._monotonic(), self._term
            await self._seek()
            ready = [owned for owned in self._lanes() if not self._behind(owned)]
            if await self._tell(ready, begun_s):
                self._metrics.turn_seconds.observe(self._monotonic() - begun_s)
            for owned in self._lanes():
                full = isinstance(owned.lane, SourceLane) and owned.lane.full
                due = self._monotonic() >= owned.snapshot_s and owned.written != owned.offsets
                if term == self._term and (full or due):
                    await self._write(owned)
            measure(self._metrics, self._lanes(), self._groups, self._clock() / 1e6)

    async def _tell(self, ready: list[Owned], begun_s: float) -> bool:
        """Tell what is due; return whether anything was."""
        now_us = self._clock()
        due = [owned for owned in ready if owned.lane.due(now_us)]
        if not due or not await self._commit(due):
            return False
        lists: list[list[Out]] = [[], []]
        windows = 0
        for owned in due:
            if isinstance(owned.lane, MergeLane):
                outs = owned.lane.tell(now_us, lambda: self._monotonic() - begun_s < _BUDGET_S)
                windows += len(outs)
                lists[1] += outs
            else:
                notes, outs = owned.lane.tell(now_us)
                lists[0] += notes
                lists[1] += outs
        if await self._send(lists):
            self._metrics.published.inc(windows)
            if windows:
                self._metrics.told_timestamp.set(now_us / 1e6)
        return True

    async def _write(self, owned: Owned) -> None:
        owned.snapshot_s = self._monotonic() + self._snapshot_s
        offsets = owned.offsets
        lists = owned.lane.snapshot(offsets)
        size = sum(len(out.value or b"") for outs in lists for out in outs)
        if await self._send(lists):
            owned.written = offsets
            self._metrics.snapshots.inc()
            self._metrics.snapshot_bytes.labels(str(owned.stage)).set(size)

    async def _send(self, lists: list[list[Out]]) -> bool:
        """Send lists of records, each once the one before is safe; False where the partitions went meanwhile."""
        term = self._term

        async def still_ours() -> bool:
            return term == self._term

        for outs in lists:
            if not outs:
                continue
            sent = await insist(self._sender, outs, still_ours, self._tell_trouble, self._sleep)
            if sent is None or term != self._term:
                return False
            for out in outs:
                self._metrics.sent_bytes.labels(out.topic).inc(len(out.key or b"") + len(out.value or b""))
        return True

    def _tell_trouble(self, trouble: str | None) -> None:
        self.trouble = trouble
        if trouble is not None:
            self._metrics.retries.labels("send").inc()
            _LOG.warning("%s", trouble, extra={"event": "cannot_send"})

    async def _commit(self, due: list[Owned]) -> bool:
        """Commit where they are read: the group's coordinator knows whether they are ours. False: they are not."""
        term = self._term
        by_topic: dict[str, dict[int, int]] = {}
        for owned in due:
            for topic, offset in owned.offsets.items():
                by_topic.setdefault(topic, {})[owned.lane.partition] = offset
        for topic, offsets in by_topic.items():
            if not await self._groups[topic].commit(offsets):
                if term == self._term:
                    _LOG.warning("the partitions went to another process meanwhile", extra={"event": "fenced"})
                    self.drop()
                return False
        return term == self._term

    async def _seek(self) -> None:
        now_s = self._monotonic()
        for (topic, partition), owned in self._owned.items():
            place, moved_s = owned.places[topic], owned.moved_s.setdefault(topic, now_s)
            lag, _ = place.lag(self._groups[topic].highwater(partition), 0.0)
            if lag and now_s - moved_s > _STUCK_S:
                # They went by while nobody took them in: a rebalance, or a seek that was lost.
                self._seeks[(topic, partition)] = place.next
                owned.moved_s[topic] = now_s
        seeks, self._seeks = self._seeks, {}
        for (topic, partition), offset in seeks.items():
            first = await self._groups[topic].first(partition, offset)
            found = self._owned.get((topic, partition))
            if found is None:
                return  # the partitions went meanwhile
            place = found.places[topic]
            if first is not None:
                place.found(offset, first)
            await self._groups[topic].seek(partition, place.next)

    def _lanes(self) -> list[Owned]:
        return list({id(owned): owned for owned in self._owned.values()}.values())

    def _behind(self, owned: Owned) -> bool:
        """Tell whether records wait to be read, or may: what is told then would be less than what was told before."""
        clock_s, now_s = self._clock() / 1e6, self._monotonic()
        # All of them are asked: each remembers when it was not behind.
        behind = [
            place.behind(self._groups[topic].highwater(owned.lane.partition), clock_s, now_s)
            for topic, place in owned.places.items()
        ]
        return any(behind)
