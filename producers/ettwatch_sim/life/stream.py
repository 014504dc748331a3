"""The events of a whole fleet in time order, with little in memory: the attempts that run at one time."""

import heapq
from collections.abc import Iterator
from itertools import chain

from ettwatch_schemas import Event
from ettwatch_sim.delivery import deliver
from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.ending import ended, ending
from ettwatch_sim.life.fleet import Fleet, Over
from ettwatch_sim.life.looping import looping
from ettwatch_sim.life.opening import opening, submitted
from ettwatch_sim.life.pen import Pen
from ettwatch_sim.life.scenario import Scenario
from ettwatch_sim.life.skew import skewed


def simulate(seed: int, scenario: Scenario) -> Iterator[Event]:
    """Yield the events of a fleet as they arrive.

    With the usual `travel` of a scenario that is in time order, each once. The fleet is simulated as far ahead as its
    longest attempt lasts, counted with the wait before it; the attempts of that time are in memory, and of those that
    run the next events.
    """
    events = skewed(seed, in_order(seed, scenario), scenario.travel)
    return deliver(seed, events, scenario.travel.delivery)


def in_order(seed: int, scenario: Scenario) -> Iterator[Event]:
    """Yield the events of a fleet in time order, each once."""
    fleet = Fleet(seed, scenario)
    stop = None if scenario.drain else scenario.end
    waiting: list[tuple[int, int, Attempt | Over]] = []  # what is over, by when its first event is
    live: list[tuple[int, int, Event, Iterator[Event]]] = []  # the next event of each that tells
    count = 0
    for item in chain(fleet.run(), (None,)):
        if item is not None:
            count += 1
            heapq.heappush(waiting, (_first(item), count, item))
        settled = fleet.settled if item is not None else None
        for event in _told(waiting, live, settled, scenario):
            if stop is not None and event.ts >= stop:
                return
            yield event


def _told(
    waiting: list[tuple[int, int, Attempt | Over]],
    live: list[tuple[int, int, Event, Iterator[Event]]],
    settled: int | None,
    scenario: Scenario,
) -> Iterator[Event]:
    """Yield what is told before `settled`; all, where that is None."""
    while True:
        begins = waiting[0][0] if waiting else None
        speaks = live[0][0] if live else None
        at = min((t for t in (begins, speaks) if t is not None), default=None)
        if at is None or (settled is not None and at >= settled):
            return
        if at == begins:
            _, number, item = heapq.heappop(waiting)
            _push(live, number, events_of(item, scenario))
        else:
            _, number, event, rest = live[0]
            yield event
            following = next(rest, None)
            if following is None:
                heapq.heappop(live)
            else:
                heapq.heapreplace(live, (following.ts, number, following, rest))


def _push(live: list[tuple[int, int, Event, Iterator[Event]]], number: int, events: Iterator[Event]) -> None:
    event = next(events, None)
    if event is not None:
        heapq.heappush(live, (event.ts, number, event, events))


def _first(item: Attempt | Over) -> int:
    if isinstance(item, Over):
        return item.ts
    return item.order.submitted if item.number == 0 else item.queued


def events_of(item: Attempt | Over, scenario: Scenario) -> Iterator[Event]:
    """Yield the events of an attempt, or of the end of a job, in time order."""
    if isinstance(item, Over):
        yield ended(item)
        return
    if item.number == 0:
        yield submitted(item)
    pen = Pen(item, scenario.ranks)
    yield from opening(pen, scenario.report_every_s)
    if item.trained:
        yield from looping(pen)
    yield from ending(pen)
