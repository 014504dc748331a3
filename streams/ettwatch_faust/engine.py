"""The work between Faust and the lanes: takes records in, flushes effects and state, then commits.

A flush does, in this order: make sure that the partitions are still its own; send results, events that count and dead
letters; when the brokers have all of that, send the changes of the state to the changelog; when they have these too,
commit the offsets; bring the local copy of the state up to date. So whatever a crash cuts off is done once more, with
the same keys and versions; and a state that holds a record, which keeps the record from being folded again, is never
there before what the record made known.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ettwatch_faust.collect import collect, in_turn
from ettwatch_faust.evict import evict
from ettwatch_faust.inbox import Inbox
from ettwatch_faust.lane import Lane
from ettwatch_faust.limit import DeadLetterLimit
from ettwatch_faust.live import Policy
from ettwatch_faust.metrics import Metrics
from ettwatch_faust.place import Next, Place
from ettwatch_faust.ports import Group
from ettwatch_faust.sender import Out, Sender, insist
from ettwatch_faust.shelf import Write
from ettwatch_faust.tenure import Tenure
from ettwatch_faust.topics import Names

__all__ = ["Engine"]

_LOG: Final = logging.getLogger(__name__)
_PUBLISH_S: Final = 0.35
_QUIET_S: Final = (0.2, 0.05)
_LOADED: Final = 0.6
"""Where flushes take this share of the time, mere progress is told more slowly: what happened is told sooner then."""
_EVICT_EVERY_S: Final = 5.0


class Engine:
    """One worker's work. For one event loop.

    Args:
        names: The topics.
        policy: How jobs are treated.
        store: Returns what gives `part(partition)` and takes `write(partition, writes, offset)`.
        group: The consumer group.
        sender: Sends.
        metrics: The figures.
        dlq_limit: Dead letters among 1,000 records with which it stops; 0 for none.
        states: Weight of states kept in memory.
        certain_s: For how long after an answer of the group's coordinator nobody else can own the partitions.
        clock: The time in µs.
        monotonic: A monotonic clock (s).
        sleep: Waits.
    """

    def __init__(
        self,
        names: Names,
        policy: Policy,
        store: Callable[[], Any],
        group: Group,
        sender: Sender,
        metrics: Metrics,
        *,
        dlq_limit: int = 0,
        states: int = 3_000_000,
        certain_s: float = 15.0,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._names = names
        self._policy = policy
        self._store = store
        self._group = group
        self._sender = sender
        self._metrics = metrics
        self._inbox = Inbox(DeadLetterLimit(dlq_limit), metrics)
        self._states = states
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._tenure = Tenure(group, certain_s, monotonic, sleep, self._tell_trouble)
        self._lanes: dict[int, Lane] = {}
        self._places: dict[int, Place] = {}
        self._seeks: dict[int, int] = {}
        self._moved: set[int] = set()
        self.full = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._flushing = asyncio.Lock()
        self._term = 0  # rises whenever partitions are taken away
        self._evict_s = 0.0
        self._turn = 0
        self._begun_s = self._took_s = 0.0  # of the flush before
        self._loaded = False
        self._joined = False
        self._trouble: str | None = None

    # Ownership

    async def assign(self, partitions: list[int], generation: int) -> None:
        """Take over partitions whose state is read; they are all that it has."""
        self.drop()
        term = self._term
        count = await self._group.partitions()
        places: dict[int, Place] = {}
        for partition in partitions:
            committed, first = await self._group.committed(partition)
            if committed is not None and committed < first:
                lost = first - committed
                self._metrics.lost_records.inc(lost)
                _LOG.error(
                    "%d records of partition %d were removed by retention before they were read",
                    lost,
                    partition,
                    extra={"event": "records_lost", "partition": partition, "records": lost},
                )
            places[partition] = Place(max(first, committed or 0))
        if term != self._term:
            return  # they went again meanwhile
        self._inbox.partitions = count
        self._places = places
        self._tenure.begin({partition: place.next for partition, place in places.items()})
        self._lanes = {p: Lane(self._store().part(p), self._policy, generation) for p in partitions}
        self._joined = True
        self._metrics.rebalances.inc()
        self._metrics.partitions.set(len(self._lanes))
        jobs = sum(lane.jobs.total() for lane in self._lanes.values())
        about = {"event": "assigned", "partitions": len(partitions), "jobs": jobs}
        _LOG.info("%d partitions taken over, with %d jobs", len(partitions), jobs, extra=about)

    async def revoke(self, seconds: float) -> None:
        """Flush what is held, if that is possible in time, and let go of all partitions."""
        try:
            await asyncio.wait_for(self.flush(), seconds)
        except TimeoutError:
            _LOG.warning("no time to flush before the partitions go", extra={"event": "revoked_unflushed"})
        held = bool(self._lanes)
        self.drop()
        if held:
            _LOG.info("partitions handed back", extra={"event": "revoked"})

    def drop(self) -> None:
        """Let go of all partitions as they are: what was not committed is read again by whoever owns them next."""
        self._term += 1
        self._joined = False
        for partition in self._lanes:
            self._metrics.lag.labels(str(partition)).set(0)
        self._lanes.clear()
        self._places.clear()
        self._seeks.clear()
        self._clear()
        self._metrics.partitions.set(0)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._sender.close()
        await self._group.close()

    def _clear(self) -> None:
        self._inbox.clear()
        self._moved = set()
        self._room.set()
        self.full.clear()

    @property
    def joined(self) -> bool:
        """Whether it has its share of the partitions, which may be none."""
        return self._joined

    @property
    def trouble(self) -> str | None:
        """Why it cannot go on just now; None if it can."""
        return self._trouble

    # Records

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._room.wait()

    def take(self, message: Any) -> None:
        """Take in one record of the events topic (an aiokafka ConsumerRecord). Raises Stopped, StateError."""
        partition = message.partition
        lane = self._lanes.get(partition)
        if lane is None:
            return
        place = self._places[partition]
        verdict = place.judge(message.offset, self._monotonic())
        if verdict is not Next.TAKE:
            self._pass_over(place, partition, verdict)
            return
        place.stamp_s = message.timestamp / 1000
        self._moved.add(partition)
        self._inbox.take(lane, message, self._clock())
        if self._inbox.full:
            self._room.clear()
            self.full.set()

    def _pass_over(self, place: Place, partition: int, verdict: Next) -> None:
        if verdict is Next.SEEN:
            self._inbox.seen()
        elif verdict is Next.SEEK:
            self._seeks[partition] = place.next
            self._metrics.gaps.inc()

    # Flushing

    async def flush(self) -> None:
        """Send, wait, commit. Raises StateError where a state cannot be read."""
        async with self._flushing:
            begun_s = self._monotonic()
            self._loaded = self._took_s > _LOADED * (begun_s - self._begun_s)
            self._begun_s, self._took_s = begun_s, 0.0
            await self._seek()
            await self._pass_over_ends()
            term = self._term
            outs, writes = self._collect()
            offsets = {partition: self._places[partition].next for partition in self._moved | writes.keys()}
            self._clear()
            if not offsets and not outs:
                self._evict()
                return
            self._metrics.busy_seconds.labels("collect").inc(self._monotonic() - begun_s)
            try:
                last = await self._send(outs, writes, term)
                # The group's coordinator is the judge: what it does not let us commit, somebody else works on by now.
                if last is None or term != self._term or not await self._commit(offsets, term):
                    return
            except BaseException:
                # What was gathered is in nobody's hands any more: what comes after it must not be committed.
                if term == self._term:
                    self.drop()
                raise
            for partition, some in writes.items():
                self._store().write(partition, some, last.get((self._names.state, partition)))
            self._took_s = self._monotonic() - begun_s
            self._metrics.flush_seconds.observe(self._took_s)
            self._evict()

    def _collect(self) -> tuple[list[Out], dict[int, list[Write]]]:
        """Gather what is to be sent. All at one moment: nothing is folded meanwhile."""
        begun_s, now, quiet_s = self._monotonic(), self._monotonic, _QUIET_S[self._loaded]
        behind = {partition: self._behind(partition) for partition in self._lanes}
        self._turn += 1
        told = collect(
            *(self._names, self._inbox, in_turn(self._lanes, self._turn), behind, self._clock()),
            *(lambda: now() - begun_s < _PUBLISH_S, lambda: now() - begun_s < quiet_s),
        )
        self._metrics.published.inc(told.publications)
        return told.outs, told.writes

    async def _send(
        self, outs: list[Out], writes: dict[int, list[Write]], term: int
    ) -> dict[tuple[str, int], int] | None:
        """Send until the brokers have it all; None if the partitions went meanwhile."""
        state = self._names.state
        changes = [Out(state, p, key, value) for p, some in writes.items() for key, value in some]
        last: dict[tuple[str, int], int] | None = {}
        for records in (outs, changes):
            if records and last is not None:
                last = await insist(self._sender, records, lambda: self._ours(term), self._tell_trouble, self._sleep)
        if last is not None:
            self._metrics.sent(((r.topic, len(r.key or b"") + len(r.value or b"")) for r in (*outs, *changes)), state)
        return last

    async def _ours(self, term: int) -> bool:
        """Tell whether the partitions are still ours; everything is dropped where they are not."""
        if await self._tenure.lasts(lambda: term == self._term):
            return True
        self._fenced(term)
        return False

    def _tell_trouble(self, trouble: str | None) -> None:
        self._trouble = trouble
        if trouble is not None:
            self._metrics.retries.labels("send").inc()
            _LOG.warning("%s", trouble, extra={"event": "cannot_send"})

    async def _commit(self, offsets: dict[int, int], term: int) -> bool:
        """Commit; False, and everything is dropped, where the partitions are not ours any more."""
        if not offsets:
            return True
        if await self._tenure.commit(offsets) and term == self._term:
            return True
        self._fenced(term)
        return False

    def _fenced(self, term: int) -> None:
        if term == self._term:
            _LOG.warning(
                "the partitions went to another worker meanwhile; what was not committed is read again there",
                extra={"event": "fenced"},
            )
            self.drop()

    async def _seek(self) -> None:
        seeks, self._seeks = self._seeks, {}
        for partition, offset in seeks.items():
            _LOG.warning(
                "records are missing in partition %d from offset %d on; they are read again",
                partition,
                offset,
                extra={"event": "gap", "partition": partition, "offset": offset},
            )
            first = await self._group.first(partition, offset)
            place = self._places.get(partition)
            if place is None:
                return  # the partitions went meanwhile
            if first is not None:
                place.found(offset, first)
            await self._group.seek(partition, place.next)

    async def _pass_over_ends(self) -> None:
        """Move on where what is left of a partition holds no record, but the ends of transactions."""
        for partition, place in list(self._places.items()):
            if place.stalled(self._group.highwater(partition), self._monotonic()):
                asked = place.next
                first = await self._group.first(partition, asked)
                if first is not None and first > asked and self._places.get(partition) is place:
                    place.found(asked, first)
                    self._moved.add(partition)

    # Being behind, and memory

    def _behind(self, partition: int) -> bool:
        """Tell whether events of a partition wait to be read, or may."""
        place, clock_s = self._places[partition], self._clock() / 1e6
        highwater = self._group.highwater(partition)
        lag, delay_s = place.lag(highwater, clock_s)
        self._metrics.lag.labels(str(partition)).set(lag)
        self._metrics.watermark_delay.labels(str(partition)).set(delay_s)
        return place.behind(highwater, clock_s, self._monotonic())

    def _evict(self) -> None:
        now_s = self._monotonic()
        if now_s >= self._evict_s:
            self._evict_s = now_s + _EVICT_EVERY_S
            evict(self._lanes.values(), self._states, self._metrics)
