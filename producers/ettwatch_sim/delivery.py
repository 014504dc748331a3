"""How events arrive: late, doubled, out of order."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from ettwatch_schemas import Event
from ettwatch_sim.pen import US


@dataclass(frozen=True, slots=True)
class Delivery:
    """Shares and lengths of what happens on the way.

    No event is more than `late_s` plus `jitter_s` behind the newest: keep that under the lateness that the
    receiver grants.

    Attributes:
        jitter_s: Every event takes a random time up to this, so that neighbours change places.
        late: Share of events that come late.
        late_s: By how much at most.
        doubled: Share of events that come twice, the second time late.
    """

    jitter_s: float = 2.0
    late: float = 0.03
    late_s: float = 3_600.0
    doubled: float = 0.05


IN_ORDER: Final = Delivery(jitter_s=0, late=0, doubled=0)
"""Every event once, in time order."""


def deliver(seed: int, events: Iterable[Event], how: Delivery) -> Iterator[Event]:
    """Yield `events`, which are in time order, in the order of their arrival.

    What is on its way is kept in memory: the events of `late_s` that are late or doubled.
    """
    if how == IN_ORDER:
        yield from events
        return
    dice = Random(f"delivery {seed}")
    way: list[tuple[int, int, Event]] = []
    number = 0
    for event in events:
        while way and way[0][0] <= event.ts:
            yield heapq.heappop(way)[2]
        arrivals = [_length(dice, how, late=dice.random() < how.late)]
        if dice.random() < how.doubled:
            arrivals.append(_length(dice, how, late=True))
        for length in arrivals:
            number += 1
            heapq.heappush(way, (event.ts + length, number, event))
    while way:
        yield heapq.heappop(way)[2]


def _length(dice: Random, how: Delivery, *, late: bool) -> int:
    """Microseconds that an event is on its way."""
    return int(dice.random() * (how.late_s if late else how.jitter_s) * US)
