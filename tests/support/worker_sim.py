"""Workers over a made-up Kafka that crash, hang and lose their partitions, all by a seed and in made-up time."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ettwatch_faust.engine import Engine
from ettwatch_faust.live import Policy
from ettwatch_faust.metrics import Metrics
from ettwatch_faust.sender import Out, SendFailed
from ettwatch_faust.shelf import Write
from support.kafka_sim import NAMES, Kafka, Record, apply_writes


@dataclass(frozen=True, slots=True)
class Faults:
    """How often things go wrong, as shares of the occasions."""

    crash: float = 0.002
    send_fails: float = 0.03
    lost_on_the_way: float = 0.02
    comes_twice: float = 0.03
    commit_unanswered: float = 0.01


@dataclass(eq=False)
class Worker:
    """One worker: an engine, and all that Faust is to it. Its process may die at any await.

    Attributes:
        zombie: The brokers think that it is gone, but it is not.
        dead: Nothing that it does has an effect any more.
        ended_by: What it raised.
    """

    sim: "Sim"
    name: int
    zombie: bool = False
    dead: bool = False
    ended_by: BaseException | None = None
    generation: int = -1
    positions: dict[int, int] = field(default_factory=dict)
    queue: list[list[Record]] = field(default_factory=list)
    parts: dict[int, dict[bytes, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sim = self.sim
        self.engine = Engine(
            NAMES,
            sim.policy,
            lambda: self,
            self,
            self,  # type: ignore[arg-type]
            Metrics(),
            states=sim.states,
            clock=lambda: sim.clock_us,
            monotonic=sim.now_s,
            sleep=self.pause,
        )

    # The process

    async def pause(self, seconds: float) -> None:
        """Wait; at times for ever, because the process died."""
        await asyncio.sleep(seconds)
        if not self.dead and self.sim.chance(self.sim.faults.crash):
            self.die()
        if self.dead:
            await asyncio.Event().wait()

    def die(self) -> None:
        """End the process at once."""
        self.dead = True
        self.sim.crashes += 1

    async def somewhere(self) -> None:
        """An await, short or long; very long where the whole process stands still and does not know of it."""
        stands = self.zombie and self.sim.chance(0.1)
        await self.pause(20.0 if stands else self.sim.rng.choice((0.0, 0.0, 0.01, 0.3)))

    # The sender

    async def send(self, records: Iterable[Out]) -> dict[tuple[str, int], int]:
        """Send; batches of several partitions, in any order among each other, arrive one by one."""
        places: dict[tuple[str, int], list[Out]] = {}
        for out in records:
            places.setdefault((out.topic, out.partition), []).append(out)
        last: dict[tuple[str, int], int] = {}
        left = [(place, iter(chunks(self.sim.rng, outs))) for place, outs in places.items()]
        while left:
            place, some = self.sim.rng.choice(left)
            await self.somewhere()
            if self.sim.chance(self.sim.faults.send_fails):
                raise SendFailed("no answer")
            chunk = next(some, None)
            if chunk is None:
                left.remove((place, some))
                continue
            for out in chunk:
                last[place] = self.sim.kafka.append(out)
        await self.somewhere()
        return last

    async def close(self) -> None:
        """Nothing is open, of the sender and of the group."""

    # The group

    async def partitions(self) -> int:
        """How many there are."""
        await self.somewhere()
        return self.sim.kafka.partitions

    async def commit(self, offsets: dict[int, int]) -> bool:
        """Commit, as the coordinator allows."""
        await self.somewhere()
        kafka = self.sim.kafka
        mine = not self.zombie and self.generation == kafka.generation
        if mine and all(kafka.owners.get(partition) is self for partition in offsets):
            kafka.committed.update(offsets)
            if self.sim.chance(self.sim.faults.commit_unanswered):
                self.die()
            await self.somewhere()
            return True
        return False

    async def ours(self, offsets: dict[int, int]) -> bool | None:
        """Whether the coordinator takes it for the owner, if it answers."""
        await self.somewhere()
        kafka = self.sim.kafka
        if self.sim.chance(self.sim.faults.send_fails):
            return None
        mine = not self.zombie and self.generation == kafka.generation
        await self.somewhere()  # the answer is on its way
        return mine and all(kafka.owners.get(partition) is self for partition in offsets)

    async def committed(self, partition: int) -> tuple[int | None, int]:
        """What is committed, and where the partition begins."""
        await self.somewhere()
        return self.sim.kafka.committed.get(partition), 0

    async def first(self, partition: int, offset: int) -> int | None:
        """What the brokers have, if they answer."""
        await self.somewhere()
        if self.sim.chance(self.sim.faults.send_fails):
            return None
        return next((record.offset for record in self.sim.kafka.events[partition] if record.offset >= offset), None)

    async def seek(self, partition: int, offset: int) -> None:
        """Read on from there. What was fetched before is still on its way."""
        await self.somewhere()
        if partition in self.positions:
            self.positions[partition] = offset

    def highwater(self, partition: int) -> int | None:
        """The end, once something was fetched."""
        return self.sim.kafka.ends[partition] if partition in self.positions and self.sim.chance(0.9) else None

    # The store

    def part(self, partition: int) -> dict[bytes, bytes]:
        """A partition of the table."""
        return self.parts[partition]

    def write(self, partition: int, writes: Iterable[Write], offset: int | None) -> None:
        """Bring it up to date."""
        apply_writes(self.parts[partition], writes)

    # What Faust does

    async def rebalanced(self, generation: int, partitions: list[int]) -> None:
        """Hand back what it had, then take over."""
        rng = self.sim.rng
        await self.engine.revoke(rng.choice((0.0, 0.2, 5.0)))
        await self.somewhere()
        if self.sim.kafka.generation != generation:
            return  # there is another one by now
        self.generation, self.positions = generation, {}
        if rng.random() < 0.5:
            self.queue.clear()
        for partition in partitions:
            await self.somewhere()
            if self.sim.kafka.generation != generation:
                return
            self.parts[partition] = self.sim.kafka.state(partition)
            # The streams resume before they are sought to what was committed.
            self.positions[partition] = max(0, self.sim.kafka.committed.get(partition, 0) + rng.choice((0, 0, -3)))
        if self.sim.kafka.generation != generation:
            return
        await self.engine.assign(partitions, generation)

    async def fetch(self) -> None:
        """Fetch for ever; at times what was fetched is lost, or fetched twice."""
        sim, rng = self.sim, self.sim.rng
        while True:
            await self.pause(rng.choice((0.0, 0.05, 0.5)))
            for partition, position in list(self.positions.items()):
                waiting = [record for record in sim.kafka.events[partition] if record.offset >= position]
                some = waiting[: rng.choice((1, 3, 20))]
                if not some or len(self.queue) > 10:
                    continue
                self.positions[partition] = some[-1].offset + 1
                if not sim.chance(sim.faults.lost_on_the_way):
                    self.queue.append(some)
                if sim.chance(sim.faults.comes_twice):
                    self.positions[partition] = max(0, some[0].offset - rng.choice((0, 2, 30)))

    async def fold(self) -> None:
        """Hand on what was fetched, for ever."""
        while True:
            if not self.queue:
                await self.pause(0.05)
                continue
            for record in self.queue.pop(0):
                await self.engine.room()
                self.engine.take(record)
                if self.sim.chance(0.2):
                    await self.pause(0.0)

    async def flushes(self) -> None:
        """Flush by the clock, for ever."""
        while True:
            await self.pause(0.5)
            await self.engine.flush()

    async def live(self) -> None:
        """Be a process."""
        tasks = [asyncio.create_task(each) for each in (self.fetch(), self.fold(), self.flushes())]
        try:
            await asyncio.gather(*tasks)
        except Exception as error:
            self.ended_by = error
            self.dead = True
        finally:
            for task in tasks:
                task.cancel()


def chunks(rng: Random, outs: list[Out]) -> Iterator[list[Out]]:
    """Batches in which records of one partition arrive."""
    at = 0
    while at < len(outs):
        size = rng.choice((1, 2, 50))
        yield outs[at : at + size]
        at += size


class Sim:
    """Workers over a made-up Kafka.

    Args:
        rng: All chance.
        policy: How jobs are treated.
        partitions: Of the topics.
        faults: What goes wrong.
        clock_us: The time at which it begins.
    """

    def __init__(self, rng: Random, policy: Policy, partitions: int, faults: Faults, clock_us: int) -> None:
        self.rng = rng
        self.policy = policy
        self.faults = faults
        self.kafka = Kafka(partitions)
        self.states = rng.choice((30, 3_000_000))
        self.crashes = 0
        self._begin_us = clock_us
        self._ahead_us = 0
        self._members: list[Worker] = []
        self._all: list[Worker] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def clock_us(self) -> int:
        """The time, µs."""
        return self._begin_us + self._ahead_us + int(self.now_s() * 1_000_000)

    def now_s(self) -> float:
        """The loop's time, s."""
        return asyncio.get_running_loop().time()

    def pass_time(self, until_us: int) -> None:
        """Let the clock jump on, if it is not there yet."""
        self._ahead_us += max(0, until_us - self.clock_us)

    def chance(self, share: float) -> bool:
        """Whether something happens."""
        return self.rng.random() < share

    def start(self) -> None:
        """Start one more worker; it joins with the next rebalance."""
        worker = Worker(self, len(self._all))
        self._members.append(worker)
        self._all.append(worker)
        self._keep(asyncio.create_task(worker.live()))

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def rebalance(self) -> None:
        """Hand the partitions out anew among those that the brokers know."""
        self._members = [worker for worker in self._members if not worker.dead]
        while len(self._members) < 2:
            self.start()
        kafka = self.kafka
        members = [worker for worker in self._members if not worker.zombie]
        if not members:
            self.start()
            members = self._members[-1:]
        # Those that follow the protocol hand back first, in the old generation.
        shares: dict[Worker, list[int]] = {}
        self.rng.shuffle(members)
        for partition in range(kafka.partitions):
            shares.setdefault(members[partition % len(members)], []).append(partition)
        revokes = [(worker, worker.engine.revoke(self.rng.choice((0.0, 0.2, 5.0)))) for worker in members]
        await asyncio.wait([asyncio.create_task(self._quietly(*each)) for each in revokes], timeout=8)
        kafka.generation += 1
        kafka.owners = {partition: worker for worker, share in shares.items() for partition in share}
        for worker in members:
            share = shares.get(worker, [])
            self._keep(asyncio.create_task(self._quietly(worker, worker.rebalanced(kafka.generation, share))))

    async def _quietly(self, worker: Worker, doing: Any) -> None:
        try:
            await doing
        except Exception as error:
            worker.ended_by = error
            worker.dead = True

    def disturb(self) -> None:
        """Make a worker a zombie, or have one come to itself."""
        worker = self.rng.choice(self._members)
        worker.zombie = not worker.zombie

    def calm(self) -> None:
        """From now on nothing goes wrong."""
        self.faults = Faults(0, 0, 0, 0, 0)
        for worker in self._members:
            worker.zombie = False

    @property
    def ended_by(self) -> list[BaseException]:
        """What workers raised."""
        return [worker.ended_by for worker in self._all if worker.ended_by is not None]

    @property
    def done(self) -> bool:
        """Whether all events are read and committed."""
        ends = {p: events[-1].offset + 1 for p, events in enumerate(self.kafka.events) if events}
        return all(self.kafka.committed.get(p, 0) >= end for p, end in ends.items())
