"""Many random jobs at once."""

import heapq
from collections.abc import Iterator
from random import Random

from ettwatch_schemas import Event
from ettwatch_sim.delivery import Delivery, deliver
from ettwatch_sim.job import random_job
from ettwatch_sim.pen import US
from ettwatch_sim.shape import Shape


def random_jobs(
    seed: int, count: int, *, shape: Shape | None = None, delivery: Delivery | None = None
) -> Iterator[Event]:
    """Yield the events of `count` random jobs as they arrive, jobs interleaved by time.

    Job number i of a seed is the same for every `count`. Only the jobs that run at one time are in memory, and what is
    on its way. For events in time order give `delivery=IN_ORDER`.
    """
    return deliver(seed, _interleaved(seed, count, shape or Shape()), delivery or Delivery())


def _interleaved(seed: int, count: int, shape: Shape) -> Iterator[Event]:
    """Yield the events of all jobs in time order."""
    dice = Random(f"fleet {seed}")
    # The next event of each job that runs; the number of the job breaks ties.
    heads: list[tuple[int, int, Event, Iterator[Event]]] = []
    start = float(shape.begin)
    for i in range(count):
        job = random_job(Random(f"job {seed} {i}"), f"sim-{seed}-{i}", int(start), shape)
        # No event of a later job is before the start of this one.
        yield from _until(heads, int(start))
        _push(heads, i, iter(job))
        start += dice.expovariate(1 / shape.spacing_s) * US
    yield from _until(heads, None)


def _until(heads: list[tuple[int, int, Event, Iterator[Event]]], ts: int | None) -> Iterator[Event]:
    while heads and (ts is None or heads[0][0] < ts):
        _, i, event, rest = heapq.heappop(heads)
        yield event
        _push(heads, i, rest)


def _push(heads: list[tuple[int, int, Event, Iterator[Event]]], i: int, rest: Iterator[Event]) -> None:
    event = next(rest, None)
    if event is not None:
        heapq.heappush(heads, (event.ts, i, event, rest))
