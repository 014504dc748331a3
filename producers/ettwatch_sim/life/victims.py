"""Whom to preempt: anybody, or those that lose least by it."""

from collections.abc import Mapping
from random import Random

from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.dice import US


def choose(running: Mapping[str, Attempt], hosts: int, now: int, chance: Random) -> list[str]:
    """Return the names of attempts that together hold at least `hosts` hosts, fewer where there are not so many.

    Attempts whose owners have checkpoint-aware preemption are taken by what they would lose, the least first;
    the others in random order, before them.

    Args:
        running: Attempts by name.
        hosts: How many hosts are needed.
        now: The time (µs).
        chance: For the order of the others.
    """
    able = [name for name, each in running.items() if each.start + US < now < each.frozen]
    chance.shuffle(able)
    able.sort(key=lambda name: _loss(running[name], now))
    chosen = []
    for name in able:
        if hosts <= 0:
            break
        chosen.append(name)
        hosts -= len(running[name].hosts)
    return chosen


def _loss(attempt: Attempt, now: int) -> float:
    """GPU-seconds lost for each GPU that is freed; 0 where nobody asks."""
    if "preemption" not in attempt.order.remedies:
        return 0.0
    startup = attempt.startup
    recovery = startup.first_batch - attempt.start
    if now <= startup.first_batch:
        return (now - attempt.start) + recovery
    safe = max((d.position for d in attempt.durables if d.ts <= now), default=attempt.position)
    unsaved = (attempt.loop.position_at(now) - safe) * US // attempt.loop.pace.rate
    return unsaved + recovery
