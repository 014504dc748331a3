"""When jobs are submitted: people in the day, timers in the night, little on the weekend."""

import heapq
from collections.abc import Iterator
from math import exp
from typing import Final

from ettwatch_sim.life.dice import DAY, HOUR, US, dice, number
from ettwatch_sim.life.order import Order
from ettwatch_sim.life.remedies import Remedy
from ettwatch_sim.life.scenario import Scenario, Team

_HOURS: Final = (1, 1, 1, 1, 1, 2, 3, 6, 10, 14, 16, 15, 11, 14, 16, 15, 13, 10, 7, 5, 4, 3, 2, 1)
"""How many jobs people submit in each hour of the day (UTC), in parts."""
_THURSDAY: Final = 3
"""The weekday of the Unix epoch, counted from Monday."""


def orders(seed: int, scenario: Scenario) -> Iterator[Order]:
    """Yield the jobs of all teams by the time of their submission. Only those of one day are in memory."""
    teams = (_of_team(seed, scenario, team) for team in scenario.teams)
    merged = heapq.merge(*teams, key=lambda order: order.submitted)
    for count, order in enumerate(merged):
        if scenario.jobs is not None and count >= scenario.jobs:
            return
        yield order


def _of_team(seed: int, scenario: Scenario, team: Team) -> Iterator[Order]:
    timers = _timers(seed, team)
    deploys = _Deploys(seed, scenario, team)
    remedies = frozenset(scenario.remedies if team.remedies is None else team.remedies)
    count = 0
    day = 0
    while day < scenario.days:
        begin = scenario.begin + day * DAY
        for ts, eligible, luck in sorted(_of_day(seed, scenario, team, day, timers)):
            if begin + ts < scenario.end:
                count += 1
                when = None if eligible is None else begin + eligible
                yield _order(seed, scenario, team, remedies, count, begin + ts, when, luck, deploys)
        day += 1


def _timers(seed: int, team: Team) -> list[int]:
    """At which time of the day (µs) each timer of a team goes off."""
    chance = dice(seed, "timers", team.name)
    wanted = team.jobs_per_day * team.nightly
    timers = int(wanted) + (chance.random() < wanted % 1)
    return [int(chance.uniform(0.5, 5) * HOUR) for _ in range(timers)]


def _of_day(
    seed: int, scenario: Scenario, team: Team, day: int, timers: list[int]
) -> Iterator[tuple[int, int | None, int]]:
    """Yield when (µs of the day), from when on it may run, and a number for its dice."""
    chance = dice(seed, "day", team.name, day)
    for i, at in enumerate(timers):
        # A timer's job is put up before its time, for then.
        yield max(0, at - chance.randrange(HOUR // 2)), at, number(seed, team.name, day, "timer", i)
    weekday = (scenario.begin // DAY + day + _THURSDAY) % 7
    rate = max(0.0, team.jobs_per_day - len(timers))
    if weekday >= 5:
        rate *= scenario.weekend
    part, i = 0.0, 0
    total = sum(_HOURS)
    while rate > 0:
        part += chance.expovariate(rate)
        if part >= 1:
            return
        yield _clock(part * total), None, number(seed, team.name, day, i)
        i += 1


def _clock(parts: float) -> int:
    """The time of the day (µs) by which so many parts of a day's jobs are submitted."""
    for hour, weight in enumerate(_HOURS):
        if parts < weight:
            return int((hour + parts / weight) * HOUR)
        parts -= weight
    return DAY - 1


def _order(
    seed: int,
    scenario: Scenario,
    team: Team,
    remedies: frozenset[Remedy],
    count: int,
    submitted: int,
    eligible: int | None,
    luck: int,
    deploys: "_Deploys",
) -> Order:
    chance = dice(luck, "order")
    model = scenario.model(chance.choice(team.models))
    fits = [each.name for each in scenario.clusters if each.gpus >= model.hosts * 8]
    cluster = chance.choice([name for name in fits if not team.clusters or name in team.clusters])
    work_s = model.work_h * 3_600 * exp(model.work_spread * chance.gauss())
    stopped = chance.random() < scenario.cancelled
    patience = chance.uniform(0.02, 1.2) * work_s
    return Order(
        name=f"{team.name}-{model.name}-s{seed}-{count}",
        seed=luck,
        team=team,
        model=model,
        cluster=cluster,
        submitted=submitted,
        eligible=eligible,
        target=max(1, int(work_s * model.samples_per_s)),
        version=deploys.version(submitted),
        cancel=submitted + int((patience + 600) * US) if stopped else None,
        remedies=remedies,
    )


class _Deploys:
    """Versions of a team's code."""

    def __init__(self, seed: int, scenario: Scenario, team: Team) -> None:
        self._chance = dice(seed, "deploys", team.name)
        self._every = scenario.deploy_days
        self._next = scenario.begin + self._length()
        self._version = 1

    def version(self, ts: int) -> int:
        """Return the version that is current at `ts`, which never goes back."""
        while ts >= self._next:
            self._version += 1
            self._next += self._length()
        return self._version

    def _length(self) -> int:
        return int(self._chance.expovariate(1 / self._every) * DAY)
