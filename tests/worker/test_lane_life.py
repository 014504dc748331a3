"""Whatever becomes of workers, what is published of the jobs of a partition adds up to what is so."""

from random import Random

import pytest

from ettwatch_core import Pace, Rules
from ettwatch_faust.lane import Lane
from ettwatch_faust.live import Answer, Policy
from ettwatch_faust.shelf import Write
from ettwatch_schemas import Event
from ettwatch_sim import Delivery, Shape, random_jobs
from support.jobs import mangle, random_job
from support.kafka_sim import apply_writes
from support.lanes import SECOND, Readers, clock_of

HOUR = 3600 * SECOND
DAY = 24 * HOUR


def a_policy(rng: Random, lateness: int | None) -> Policy:
    rules = Rules(lateness=lateness)
    return Policy(rules, Pace(rules, 60 * SECOND, 60 * SECOND, 30 * DAY), publish_us=rng.choice((0, 15 * SECOND)))


class World:
    """One partition: its records, the changelog of its states, and one worker after the other."""

    def __init__(self, rng: Random, policy: Policy, records: list[tuple[str, list[Event]]]) -> None:
        self.rng = rng
        self.policy = policy
        self.records = records
        self.log: dict[bytes, bytes] = {}
        self.committed = 0
        self.generation = 0
        self.readers = Readers()
        self.answers: dict[int, list[Answer]] = {}
        self.now = min(event.ts for _, events in records for event in events)
        self.crashes = 0
        self.start()

    def start(self) -> None:
        self.generation += self.rng.choice((0, 1, 1, 5))  # 0: of a group that began anew
        self.part = dict(self.log)
        self.lane = Lane(self.part, self.policy, self.generation)
        self.next = self.committed
        self.reached = max(self.answers, default=-1) + 1

    def feed(self, count: int) -> None:
        for _ in range(count):
            if self.next == len(self.records):
                return
            job, events = self.records[self.next]
            self.now = max(self.now, *(event.ts for event in events))  # clocks do not differ here
            answers = self.lane.take(job, events, self.next, self.now)
            if answers is not None:
                assert self.answers.setdefault(self.next, answers) == answers, "the verdict depends on the record only"
            self.next += 1

    def flush(self, *, crashes: bool = True) -> None:
        # Until it has read what was there when it began it counts as behind.
        behind = self.next < self.reached or (crashes and self.rng.random() < 0.3)
        go_on = self.go_on if crashes else always
        publications = [] if behind else self.lane.tick(self.now, go_on)
        publications += self.lane.publish(self.now, behind=behind, go_on=go_on)
        writes = self.lane.writes(self.now)
        for publication in publications:
            self.readers.publish(publication)
        if crashes and self.rng.random() < 0.08:
            self.crash(writes)
            return
        apply_writes(self.log, writes)
        self.committed = self.next
        apply_writes(self.part, writes)
        if self.rng.random() < 0.3:
            self.lane.evict(self.rng.choice((1, 50, 10**9)))

    def crash(self, writes: list[Write]) -> None:
        """Some of the writes arrive, at times all of them; nothing is committed."""
        self.crashes += 1
        apply_writes(self.log, writes[: self.rng.randint(0, len(writes))])
        self.now += self.rng.randint(0, 40) * SECOND
        self.start()

    def go_on(self) -> bool:
        return self.rng.random() < 0.7

    def live(self) -> None:
        while self.next < len(self.records):
            self.feed(self.rng.choice((1, 1, 3, 20)))
            self.now += self.rng.choice((0, 0, 500_000, 20 * SECOND))
            if self.rng.random() < 0.02:
                self.now += self.rng.choice((11 * 60 * SECOND, 3 * HOUR))
            self.flush()
        self.committed = min(self.committed, len(self.records))
        self.feed(len(self.records))
        self.look()

    def look(self) -> None:
        """Let the clock go on until everything was told; then compare."""
        for _ in range(3):
            self.now += 61 * SECOND
            self.flush(crashes=False)
        counted: dict[str, list[list[Event]]] = {}
        for offset, (job, events) in enumerate(self.records):
            told = zip(events, self.answers[offset], strict=True)
            counted.setdefault(job, []).append([event for event, answer in told if answer is not Answer.EXPIRED])
        for job, records in counted.items():
            truth = self.readers.check(job, records, self.policy.rules)
            if truth.summary.status in ("starting", "training", "recovering", "pending", "silent"):
                assert self.now - clock_of(truth.summary.version) < 62 * SECOND, "it is kept up to date"


def always() -> bool:
    return True


def batches(rng: Random, events: list[Event]) -> list[tuple[str, list[Event]]]:
    """Records of one to many events, in the order of arrival."""
    records: list[tuple[str, list[Event]]] = []
    last: dict[str, int] = {}
    most = rng.choice((1, 3, 50))
    for event in events:
        at = last.get(event.job)
        if at is None or len(records[at][1]) >= most or rng.random() < 0.2:
            last[event.job] = len(records)
            records.append((event.job, [event]))
        else:
            records[at][1].append(event)
    return records


def a_fleet(rng: Random, lateness: int | None) -> list[Event]:
    """A few jobs of the simulator, or odd ones, in the order of arrival."""
    count = rng.randint(1, 4)
    if rng.random() < 0.5:
        late_s = min(3_000.0, (lateness or HOUR) / SECOND - 3)
        loop_s = rng.choice((100, 900, 30_000))
        shape = Shape(loop_s=loop_s, report_every_s=60 if loop_s < 1_000 else 300, odd=0.4)
        delivery = Delivery(jitter_s=2 if late_s > 0 else 0, late_s=max(0.0, late_s))
        return list(random_jobs(rng.randint(0, 10**6), count, shape=shape, delivery=delivery))
    events = [event for i in range(count) for event in random_job(rng, f"job-{i}")]
    return mangle(rng, events, lateness_us=lateness or HOUR)


def one_life(seed: int) -> World:
    rng = Random(seed)
    lateness = rng.choice((None, 5 * SECOND, 60 * SECOND, 400 * SECOND, HOUR))
    world = World(rng, a_policy(rng, lateness), batches(rng, a_fleet(rng, lateness)))
    world.live()
    return world


@pytest.mark.parametrize("seed", range(40))
def test_a_reader_knows_the_jobs(seed: int) -> None:
    one_life(seed)
