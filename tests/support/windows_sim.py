"""Both stages of the windows over a made-up Kafka, with owners that die between any two records. All by a seed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from ettwatch_core.ownership import Owners
from ettwatch_core.windows import MINUTE_US, LedgerError, Recovered, Sizes, recover
from ettwatch_faust.sender import Out
from ettwatch_faust.topics import names
from ettwatch_faust.windows.merge_lane import MergeLane
from ettwatch_faust.windows.source_lane import SourceLane
from ettwatch_schemas import Window, decode_window, encode_update
from support.windows import OWNERS, Message

NAMES = names("sim")
WAIT_US = 45_000_000


@dataclass(slots=True)
class Record:
    """What lies in a partition."""

    key: bytes | None
    value: bytes | None
    time_ms: int


@dataclass
class World:
    """The brokers, and what has to stay the same for all owners."""

    dice: Random
    sizes: Sizes
    clock_us: int
    partitions: int = 2
    owners: Owners = OWNERS
    logs: dict[tuple[str, int], list[Record]] = field(default_factory=dict)
    generation: int = 0
    crashes: int = 0

    def log(self, topic: str, partition: int) -> list[Record]:
        """The records of a partition."""
        return self.logs.setdefault((topic, partition), [])

    def send(self, out: Out) -> None:
        """Append a record."""
        self.log(out.topic, out.partition).append(Record(out.key, out.value, self.clock_us // 1000))

    def tell(self, message: Message) -> None:
        """Append what a worker publishes."""
        topic, update = message
        partition = hash_of(update.job) % self.partitions
        self.send(Out(getattr(NAMES, topic), partition, update.job.encode(), encode_update(update)))

    def state(self, stage: int, partition: int) -> Recovered:
        """Read the state of an owner; what was replaced may be gone or not."""
        log = self.log(NAMES.windows_state, partition)
        if self.dice.random() < 0.5:
            last = {record.key: n for n, record in enumerate(log)}
            log[:] = [record for n, record in enumerate(log) if last[record.key] == n]
        return recover(stage, ((record.key or b"", record.value) for record in log))

    def windows(self) -> dict[tuple[str, str, str, int], Window]:
        """What readers make of the windows: of each the greatest version."""
        found: dict[tuple[str, str, str, int], Window] = {}
        for partition in range(self.partitions):
            for record in self.log(NAMES.windows, partition):
                window = decode_window(record.value or b"")
                key = (window.scope, window.name, window.length, window.end // MINUTE_US)
                if key not in found or window.version > found[key].version:
                    found[key] = window
        return found


class Node:
    """An owner of one partition of one stage. It does one small thing at a time, and may be left at any of them."""

    def __init__(self, world: World, stage: int, partition: int) -> None:
        self.world = world
        self.stage = stage
        self.partition = partition
        world.generation += 1
        self.generation = world.generation
        self.lane: SourceLane | MergeLane
        if stage == 1:
            self.topics = [NAMES.jobs, NAMES.attempts, NAMES.segments]
            self.lane = SourceLane(NAMES, partition, world.sizes, world.owners, world.partitions, WAIT_US)
        else:
            self.topics = [NAMES.parts]
            self.lane = MergeLane(NAMES, partition, world.sizes, world.partitions, WAIT_US)
        self.positions: dict[str, int] = {}
        self.sending = False
        self.work = self._life()

    def step(self) -> None:
        """Do the next small thing."""
        next(self.work)

    @property
    def caught_up(self) -> bool:
        """Whether all is read that is there."""
        log = self.world.log
        return bool(self.positions) and all(len(log(t, self.partition)) == at for t, at in self.positions.items())

    def _life(self) -> Iterator[None]:
        world, lane, dice = self.world, self.lane, self.world.dice
        found = world.state(self.stage, self.partition)
        yield
        claims = (
            lane.claim(found, self.generation, world.clock_us)
            if isinstance(lane, SourceLane)
            else lane.claim(found, self.generation)
        )
        yield from self._send(claims)
        found = world.state(self.stage, self.partition)
        if isinstance(lane, SourceLane):
            lane.begin(found, world.clock_us)
        else:
            lane.begin(found)
        self.positions = {topic: lane.offsets.get(topic, 0) for topic in self.topics}
        while True:
            yield
            self._read(dice.randrange(1, 30))
            if self.caught_up and lane.due(world.clock_us):
                if isinstance(lane, SourceLane):
                    yield from self._send(lane.tell(world.clock_us))
                else:
                    yield from self._send([lane.tell(world.clock_us, lambda: dice.random() < 0.9)])
                if dice.random() < 0.3 or (isinstance(lane, SourceLane) and lane.full):
                    yield from self._send(lane.snapshot(dict(self.positions)))

    def _read(self, count: int) -> None:
        for _ in range(count):
            open_ = [t for t in self.topics if self.positions[t] < len(self.world.log(t, self.partition))]
            if not open_:
                return
            topic = self.world.dice.choice(open_)
            record = self.world.log(topic, self.partition)[self.positions[topic]]
            self.positions[topic] += 1
            if isinstance(self.lane, SourceLane):
                self.lane.take(topic, record.value, record.time_ms)
            else:
                self.lane.take(record.value)

    def _send(self, lists: list[list[Out]]) -> Iterator[None]:
        """Send record by record; within a list the order of partitions is anyone's."""
        self.sending = True
        for outs in lists:
            partitions: dict[tuple[str, int], list[Out]] = {}
            for out in outs:
                partitions.setdefault((out.topic, out.partition), []).append(out)
            while partitions:
                place = self.world.dice.choice(list(partitions))
                self.world.send(partitions[place].pop(0))
                if not partitions[place]:
                    del partitions[place]
                yield
        self.sending = False


class Play:
    """Owners of all partitions; now and then one dies, or is taken for dead and lives on for a while."""

    def __init__(self, world: World, crash: float) -> None:
        self.world = world
        self.crash = crash
        self.nodes = [Node(world, stage, p) for stage in (1, 2) for p in range(world.partitions)]
        self.zombies: list[Node] = []

    def turn(self) -> None:
        """Let someone do something, and perhaps die of it."""
        dice = self.world.dice
        at = dice.randrange(len(self.nodes))
        self.nodes[at].step()
        if dice.random() < self.crash:
            self.world.crashes += 1
            old = self.nodes[at]
            if dice.random() < 0.5:
                self.zombies.append(old)
            self.nodes[at] = Node(self.world, old.stage, old.partition)
        if self.zombies and dice.random() < 0.2:
            zombie = dice.choice(self.zombies)
            try:
                zombie.step()
            except LedgerError:
                self.zombies.remove(zombie)
            if dice.random() < 0.05 and zombie in self.zombies:
                self.zombies.remove(zombie)

    def own(self, owners: Owners) -> None:
        """Give all of them another ownership file."""
        for node in self.nodes:
            if isinstance(node.lane, SourceLane):
                node.lane.own(owners)

    def settle(self, done: Callable[[], bool], most: int = 200_000) -> None:
        """Go on without deaths until something is reached."""
        self.zombies = []
        self.crash = 0.0
        for _ in range(most):
            if done():
                return
            self.turn()
        raise AssertionError("it does not come to rest")

    def told(self) -> bool:
        """Whether all is read, and all that is due is told."""
        clock = self.world.clock_us
        return all(node.caught_up and not node.sending and not node.lane.due(clock) for node in self.nodes)


def hash_of(job: str) -> int:
    """A hash that is the same in every process."""
    return sum(job.encode())
