"""Clocks that are wrong: what hosts tell, shifted by how wrong each is."""

from collections.abc import Iterable, Iterator

from ettwatch_schemas import Event
from ettwatch_sim.life.dice import US, dice
from ettwatch_sim.life.scenario import Travel


def skewed(seed: int, events: Iterable[Event], travel: Travel) -> Iterator[Event]:
    """Yield events with the times that the clocks of their hosts showed."""
    if not (travel.skewed and travel.skew_s):
        yield from events
        return
    shifts: dict[str | None, int] = {None: 0}  # a scheduler is right
    for event in events:
        shift = shifts.get(event.host)
        if shift is None:
            chance = dice(seed, "clock", event.host)
            wrong = chance.random() < travel.skewed
            shift = shifts[event.host] = int(chance.uniform(-1, 1) * travel.skew_s * US) if wrong else 0
        yield event.model_copy(update={"ts": event.ts + shift}) if shift else event
