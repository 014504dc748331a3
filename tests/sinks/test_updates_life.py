"""A worker that crashes and is set back, a sink that reads in any batches, some of them twice: one truth remains."""

from collections.abc import Callable
from random import Random

import pytest

from ettwatch_clickhouse import Store
from ettwatch_clickhouse.standing import look_up
from ettwatch_clickhouse.updates import UpdateBatch
from ettwatch_clickhouse.writeids import WriteIds
from ettwatch_core import JobState, Published, Rules, Settled, apply, dump, load, settle, snapshot
from ettwatch_schemas import (
    Event,
    Update,
    decode_attempts,
    decode_phases,
    decode_segments,
    decode_summary,
    encode_update,
)
from support.clickhouse import StoppedClock, Truth, read_truth, should_be
from support.jobs import BASE, random_job

HOUR = 3_600_000_000
RULES = Rules(lateness=HOUR // 2)
STRETCH = 4
DECODERS: tuple[Callable[[bytes], Update], ...] = (decode_summary, decode_attempts, decode_phases, decode_segments)


class Worker:
    """Follows one job, publishes on four topics, crashes, and goes on from what it had kept."""

    def __init__(self, rng: Random, events: list[Event]) -> None:
        self.rng = rng
        self.events = events
        self.topics: list[list[bytes]] = [[], [], [], []]
        self.now = BASE
        self.kept: tuple[int, bytes | None, list[Settled]] = (0, None, [])
        self.furthest = 0
        self.start()

    def start(self) -> None:
        self.at, state, finals = self.kept
        self.finals = list(finals)
        job = self.events[0].job
        self.state = JobState(job) if state is None else load(state)
        self.published = Published()
        self.behind = self.furthest > self.at

    def live(self) -> None:
        while self.at < len(self.events):
            apply(self.state, self.events[self.at], RULES)
            self.at += 1
            self.now = max(self.now, self.state.newest) + self.rng.choice((0, 1_000, 40_000_000))
            if self.behind and self.at >= self.furthest:
                self.behind = False
                self.published.start_over()
            dice = self.rng.random()
            if dice < 0.06:
                self.start()
            elif dice < 0.3:
                self.publish()
                if self.rng.random() < 0.5:
                    self.kept = (self.at, dump(self.state), list(self.finals))
        self.publish()

    def publish(self) -> None:
        settled = settle(self.state, RULES, every=HOUR // 4) if self.rng.random() < 0.5 else None
        if settled is not None:
            self.published.settled(settled)
            self.finals.append(settled)
        snap = snapshot(self.state, RULES, self.second())
        said = self.published.publication(snap)
        updates: list[list[Update]] = [
            [] if said.summary is None else [said.summary],
            [*said.attempts],
            [*said.phases],
            [*said.segments],
        ]
        for topic, some in zip(self.topics, updates, strict=True):
            topic += [encode_update(update) for update in some]
        self.furthest = max(self.furthest, self.at)

    def truth(self) -> Truth:
        return should_be(snapshot(self.state, RULES, self.second()), self.finals)

    def second(self) -> int:
        return self.now // 1_000_000 * 1_000_000


class Sink:
    """Reads the topics in batches, some of them twice, each from where it stood."""

    def __init__(self, store: Store, rng: Random, topics: list[list[bytes]]) -> None:
        self.store = store
        self.rng = rng
        self.topics = topics
        self.ids = WriteIds(StoppedClock())

    def live(self) -> None:
        places = [0] * len(self.topics)
        while places != [len(topic) for topic in self.topics]:
            ends = [
                min(len(topic), place + self.rng.choice((0, 1, 2, 5, 20)))
                for place, topic in zip(places, self.topics, strict=True)
            ]
            self.write(places, ends)
            if self.rng.random() < 0.2:  # not committed: it comes again, mostly in another batch
                ends = [self.rng.choice((place, end)) for place, end in zip(places, ends, strict=True)]
            places = ends

    def write(self, places: list[int], ends: list[int]) -> None:
        batch = UpdateBatch()
        for topic, decode, place, end in zip(self.topics, DECODERS, places, ends, strict=True):
            for data in topic[place:end]:
                batch.update(decode(data))
        inserts = batch.inserts(look_up(self.store, batch.wholes()), self.ids)
        if self.rng.random() < 0.1:
            inserts = inserts[: self.rng.randrange(len(inserts) + 1)] + inserts  # killed in between, then once more
        for insert in inserts:
            self.store.insert(insert.table, insert.columns, insert.rows)


def stretched(events: list[Event]) -> list[Event]:
    """The events over a longer time, in order but for some."""
    changes = []
    for event in events:
        more = {"ts": BASE + (event.ts - BASE) * STRETCH}
        eligible = getattr(event, "eligible_ts", None)
        if eligible is not None:
            more["eligible_ts"] = BASE + (eligible - BASE) * STRETCH
        changes.append(event.model_copy(update=more))
    return sorted(changes, key=lambda event: event.ts)


@pytest.mark.parametrize("seed", range(6))
def test_one_truth_remains(embedded: Store, seed: int) -> None:
    rng = Random(seed)
    events = stretched(random_job(rng, f"job-{seed}"))
    late = RULES.lateness or 0
    events.sort(key=lambda event: event.ts + rng.randrange(late // 2))
    worker = Worker(rng, events)
    worker.live()
    Sink(embedded, rng, worker.topics).live()
    stored, right = read_truth(embedded, worker.state.job), worker.truth()
    assert stored is not None
    assert stored.summary == right.summary
    assert stored.segments == right.segments
    assert stored.attempts == right.attempts
    assert stored.spans == right.spans
