"""Workers that crash, hang and lose their partitions: what they tell is what one fold of the events tells."""

import asyncio
from random import Random

import pytest

from ettwatch_core import Pace, Rules
from ettwatch_faust.intake import is_home
from ettwatch_faust.live import Policy
from ettwatch_schemas import Event, decode_event, decode_message, encode_event, read_letter
from ettwatch_sim import Delivery, Shape, random_jobs
from support.jobs import mangle, random_job
from support.kafka_sim import NAMES, Kafka
from support.lanes import SECOND, Readers, clock_of
from support.virtual import run
from support.worker_sim import Faults, Sim

HOUR = 3600 * SECOND
JUNK = (b"", b"{", b"[]", b"\xff", b'{"v":1}', None)


def a_fleet(rng: Random, lateness: int | None) -> list[Event]:
    """A few jobs in the order of arrival."""
    count = rng.randint(2, 6)
    if rng.random() < 0.4:
        late_s = min(3_000.0, (lateness or HOUR) / SECOND - 3)
        shape = Shape(loop_s=rng.choice((100, 20_000)), report_every_s=300, odd=0.4)
        delivery = Delivery(late_s=max(0.0, late_s)) if late_s > 0 else Delivery(0, 0, 0, 0)
        return list(random_jobs(rng.randint(0, 10**6), count, shape=shape, delivery=delivery))
    events = [event for i in range(count) for event in random_job(rng, f"job-{i}")]
    return mangle(rng, events, lateness_us=lateness or HOUR)


class Feed:
    """Records of a fleet, and what they hold."""

    def __init__(self, rng: Random, sim: Sim, events: list[Event]) -> None:
        self.rng = rng
        self.sim = sim
        self.events = events
        self.junk: set[tuple[int, int]] = set()

    async def send(self) -> None:
        """Produce all of them, the clock with them."""
        held: dict[str, list[Event]] = {}
        most = self.rng.choice((1, 4, 30))
        for event in self.events:
            held.setdefault(event.job, []).append(event)
            if len(held[event.job]) >= most or self.rng.random() < 0.2:
                await self._record(held.pop(event.job))
        for some in held.values():
            await self._record(some)

    async def _record(self, events: list[Event]) -> None:
        rng, sim = self.rng, self.sim
        sim.pass_time(max(event.ts for event in events))
        job, partitions = events[0].job.encode(), sim.kafka.partitions
        lines = [encode_event(event) for event in events]
        value = lines[0] if len(lines) == 1 and rng.random() < 0.5 else b"[" + b", ".join(lines) + b"]"
        home = next(p for p in range(partitions) if is_home(job, p, partitions))
        skip = 1 if rng.random() < 0.02 else 0
        sim.kafka.produce(home, job, value, sim.clock_us, skip=skip)
        if rng.random() < 0.05:
            self.junk.add((home, sim.kafka.ends[home]))
            sim.kafka.produce(home, job, rng.choice(JUNK), sim.clock_us)  # type: ignore[arg-type]
        if rng.random() < 0.3:
            await asyncio.sleep(rng.choice((0.01, 0.3, 2.0)))


async def a_fleet_and_workers(seed: int, faults: Faults | None = None) -> Sim:
    rng = Random(seed)
    lateness = rng.choice((None, 5 * SECOND, 400 * SECOND, HOUR))
    rules = Rules(lateness=lateness)
    policy = Policy(rules, Pace(rules, 60 * SECOND, 60 * SECOND, 30 * 24 * HOUR))
    events = a_fleet(rng, lateness)
    sim = Sim(rng, policy, rng.choice((1, 3)), faults or Faults(), min(event.ts for event in events))
    feed = Feed(rng, sim, events)
    feeding = asyncio.create_task(feed.send())
    while not feeding.done():
        await sim.rebalance()
        for _ in range(rng.randint(1, 5)):
            await asyncio.sleep(rng.choice((0.5, 2.0, 6.0)))
            if sim.chance(0.5):
                sim.disturb()
    await feeding
    sim.calm()
    for _ in range(20):
        await sim.rebalance()
        await asyncio.sleep(30)
        if sim.done:
            break
    for _ in range(3):
        sim.pass_time(sim.clock_us + 61 * SECOND)
        await asyncio.sleep(3)
    check(sim, feed)
    return sim


def check(sim: Sim, feed: Feed) -> None:
    assert sim.ended_by == []
    assert sim.done, "everything was read"
    kafka = sim.kafka
    refused = refusals(kafka)
    accepted = {
        encode_event(event)
        for partition in range(kafka.partitions)
        for out in kafka.log(NAMES.accepted, partition)
        for line in (out.value or b"").split(b"\n")
        for event in decode_message(line).events
    }
    told: dict[str, list[list[Event]]] = {}
    wanted: set[bytes] = set()
    torn: set[str] = set()  # jobs of which one worker took what another one, by its own clock, had closed before
    for records in kafka.events:
        for record in records:
            place = record.partition, record.offset
            if place in feed.junk:
                assert (*place, None) in refused
                continue
            value = record.value or b""
            events = []
            for index, event in enumerate(decode_message(value).events):
                code = refused.get((*place, None if value[:1] != b"[" else index))
                assert code in (None, "late", "expired")
                if code is None:
                    wanted.add(encode_event(event))
                elif code == "expired" and encode_event(event) in accepted:
                    torn.add(event.job)
                if code != "expired":
                    events.append(event)
            if events:
                told.setdefault(events[0].job, []).append(events)
    assert accepted >= wanted
    assert {decode_event(line).job for line in accepted - wanted} <= torn
    readers = published(kafka)
    assert readers.jobs.keys() == told.keys()
    readers.pass_over_what_came_after_its_time()
    for job in told.keys() - torn:
        truth = readers.check(job, told[job], sim.policy.rules)
        if truth.summary.status in ("starting", "training", "recovering", "pending", "silent"):
            assert sim.clock_us - clock_of(truth.summary.version) < 130 * SECOND


def refusals(kafka: Kafka) -> dict[tuple[int, int, int | None], str]:
    out: dict[tuple[int, int, int | None], str] = {}
    for record in kafka.log(NAMES.dlq, 0):
        letter = read_letter(record.key, record.value, record.headers)
        origin = letter.partition, letter.offset, letter.index
        assert out.setdefault(origin, letter.code) == letter.code
    return out


def published(kafka: Kafka) -> Readers:
    readers = Readers()
    topics = {"jobs": NAMES.jobs, "attempts": NAMES.attempts, "phases": NAMES.phases, "segments": NAMES.segments}
    for kind, topic in topics.items():
        for partition in range(kafka.partitions):
            for out in kafka.log(topic, partition):
                assert out.key is not None
                assert out.value is not None
                readers.take(out.key.decode(), (kind, out.value))
    return readers


@pytest.mark.parametrize("seed", range(30))
def test_a_fleet_and_workers(seed: int) -> None:
    run(a_fleet_and_workers(seed))
