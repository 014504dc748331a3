"""What is fed into a pipeline: the events of random jobs as records, poison among them, and what has to come of it."""

import heapq
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, NamedTuple

from ettwatch_schemas import Event, encode_event
from ettwatch_sim import IN_ORDER, Delivery, Shape, deliver, random_jobs
from support.pipeline_poison import POISONS, Bad

__all__ = ["LONG", "SHUFFLED", "Feed", "Origin", "Record", "make_feed"]

SHUFFLED: Final = Delivery(jitter_s=3_600.0, late=0.0, doubled=1.0, late_s=3_600.0)
"""Every event comes twice, anywhere within an hour."""

LONG: Final = Shape(loop_s=40_000.0, spacing_s=600.0, attempts=2)
"""Jobs that train longer than the lateness: parts of them become final."""

_LONG_SEEDS: Final = 1_000_000


class Record(NamedTuple):
    """One record to send; `bad` tells how it has to be refused, if it has to."""

    key: bytes | None
    value: bytes | None
    bad: Bad | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something that is refused was sent; `index` in its array, None where the whole record is meant."""

    partition: int
    offset: int
    index: int | None


@dataclass(slots=True)
class Feed:
    """Records in the order in which they are sent, and what has to come of them.

    Attributes:
        records: The records.
        told: Of each job the distinct events that count, as canonical JSON.
        sent: How many events there are in the records, the bad ones left out.
        poison: How many events or records have to be refused.
    """

    records: list[Record] = field(default_factory=list)
    told: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    sent: int = 0
    poison: int = 0

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return sum(len(record.value or b"") for record in self.records)

    @property
    def events(self) -> int:
        """How many distinct events count."""
        return sum(map(len, self.told.values()))


def make_feed(
    seed: int,
    jobs: int,
    *,
    long: int = 0,
    batch: int = 1,
    poison: float = 0.0,
    shape: Shape | None = None,
    delivery: Delivery | None = None,
) -> Feed:
    """Draw a feed from a seed.

    Args:
        seed: Says everything, but for the time that counts as the future.
        jobs: How many.
        long: How many more of the sort LONG.
        batch: The most events of one record; records of a job differ.
        poison: Share of records after which a bad one follows.
        shape: Of the jobs.
        delivery: How the events arrive.
    """
    dice = Random(f"feed {seed}")
    feed = Feed()
    newest: dict[str, int] = {}
    for events in _batched(_arriving(seed, jobs, long, shape, delivery), batch, dice):
        lines = [encode_event(event) for event in events]
        job = events[0].job
        feed.told[job].update(lines)
        feed.sent += len(lines)
        newest[job] = max(newest.get(job, 0), *(event.ts for event in events))
        # An array of one is as good as the event by itself.
        alone = len(lines) == 1 and dice.random() < 0.9
        feed.records.append(Record(job.encode(), lines[0] if alone else b"[" + b",".join(lines) + b"]"))
        if dice.random() < poison:
            name, make = dice.choice(POISONS)
            key, value, bad = make(job, newest[job], lines[-1], len(feed.records))
            feed.records.append(Record(key, value, replace(bad, name=name)))
            feed.poison += 1
    return feed


def _arriving(seed: int, jobs: int, long: int, shape: Shape | None, delivery: Delivery | None) -> Iterator[Event]:
    streams: list[Iterable[Event]] = [random_jobs(seed, jobs, shape=shape, delivery=IN_ORDER)]
    if long:
        streams.append(random_jobs(_LONG_SEEDS + seed, long, shape=LONG, delivery=IN_ORDER))
    return deliver(seed, heapq.merge(*streams, key=lambda event: event.ts), delivery or Delivery())


def _batched(events: Iterable[Event], batch: int, dice: Random) -> Iterator[list[Event]]:
    """Yield events of one job each, up to `batch` of them, as a producer sends what it has."""
    if batch == 1:
        yield from ([event] for event in events)
        return
    waiting: dict[str, list[Event]] = {}
    size: dict[str, int] = {}
    for event in events:
        mine = waiting.setdefault(event.job, [])
        mine.append(event)
        if len(mine) >= size.setdefault(event.job, dice.randint(1, batch)):
            yield waiting.pop(event.job)
            del size[event.job]
    yield from waiting.values()


def as_lines(lines: Iterable[bytes]) -> bytes:
    """Return canonical events as a file of lines, in the order of their time."""
    ordered: list[bytes] = sorted(lines, key=lambda line: int(json.loads(line)["ts"]))
    return b"\n".join(ordered) + b"\n"
