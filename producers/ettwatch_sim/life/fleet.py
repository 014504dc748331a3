"""Runs a fleet: jobs come, wait, run, fail, are preempted and come again, one moment after the other."""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from ettwatch_sim.life.arrivals import orders
from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.dice import DAY, HOUR, US, dice, fraction
from ettwatch_sim.life.faults import OWN, Fault
from ettwatch_sim.life.machines import Machines
from ettwatch_sim.life.order import Order
from ettwatch_sim.life.plan import Course, Planner
from ettwatch_sim.life.scenario import Cluster, Scenario
from ettwatch_sim.life.victims import choose

_GRACE: Final = 25 * US
"""What a preempted attempt has to end."""
_MOST_ATTEMPTS: Final = 60


@dataclass(frozen=True, slots=True)
class Over:
    """A job is over. Times in µs."""

    order: Order
    ts: int
    outcome: str


@dataclass(slots=True, eq=False)
class _Running:
    course: Course
    attempt: Attempt
    hosts: list[int]


class Fleet:
    """A fleet that is run once.

    Attributes:
        now: How far it has come (µs).
    """

    def __init__(self, seed: int, scenario: Scenario) -> None:
        self._seed = seed
        self._scenario = scenario
        self._planner = Planner(scenario, scenario.injected())
        self._machines: dict[str, Machines[Course]] = {c.name: Machines(seed, c) for c in scenario.clusters}
        self._running: dict[str, dict[str, _Running]] = {c.name: {} for c in scenario.clusters}
        self._events: list[tuple[int, int, Callable[[int], list[Attempt | Over]]]] = []
        self._count = 0
        self._orders = orders(seed, scenario)
        self._open: dict[str, int] = {}  # since when a live job has told nothing
        self._told: list[tuple[int, str]] = []  # the same, with what is outdated
        self._coming = False
        self.now = scenario.begin

    @property
    def settled(self) -> int:
        """Before this time (µs) nothing will be told any more."""
        while self._told and self._open.get(self._told[0][1]) != self._told[0][0]:
            heapq.heappop(self._told)
        return min(self.now, self._told[0][0]) if self._told else self.now

    def run(self) -> Iterator[Attempt | Over]:
        """Yield attempts as they end, and jobs as they are over, in the order of those ends."""
        self._next_order()
        for cluster in self._scenario.clusters:
            self._storms(cluster)
        while self._events and (self._coming or self._open):
            self.now, _, what = heapq.heappop(self._events)
            yield from what(self.now)

    def _at(self, ts: int, what: Callable[[int], list[Attempt | Over]]) -> None:
        self._count += 1
        heapq.heappush(self._events, (max(ts, self.now), self._count, what))

    def _next_order(self) -> None:
        order = next(self._orders, None)
        self._coming = order is not None
        if order is not None:
            self._at(order.submitted, lambda now: self._submit(order))

    def _submit(self, order: Order) -> list[Attempt | Over]:
        course = Course(order, since=order.t0, queued=order.t0)
        self._tell(order.name, order.submitted)
        self._at(order.t0, lambda now: self._queue(course, now))
        self._next_order()
        return []

    def _tell(self, job: str, since: int) -> None:
        self._open[job] = since
        heapq.heappush(self._told, (since, job))

    def _queue(self, course: Course, now: int) -> list[Attempt | Over]:
        machines = self._machines[course.order.cluster]
        machines.wait(course, course.order.model.hosts, now, again=course.number > 0)
        self._grant(machines, now)
        return []

    def _grant(self, machines: Machines[Course], now: int) -> None:
        while (course := machines.next(now)) is not None:
            hosts = machines.take(course.order.model.hosts)
            start = self._planner.wait(course, now, machines.cluster.scheduler_s)
            self._begin(course, machines, hosts, start, kept=False)

    def _begin(self, course: Course, machines: Machines[Course], hosts: list[int], start: int, *, kept: bool) -> None:
        slow = machines.slow(hosts)
        names = tuple(map(machines.name, hosts))
        attempt = self._planner.attempt(course, start, names, None if slow is None else machines.name(slow), kept=kept)
        self._run(_Running(course, attempt, hosts))

    def _run(self, running: _Running) -> None:
        order = running.course.order
        self._running[order.cluster][order.name] = running
        self._at(running.attempt.released, lambda now: self._end(running, now))

    def _end(self, running: _Running, now: int) -> list[Attempt | Over]:
        course, attempt = running.course, running.attempt
        order = course.order
        if self._running[order.cluster].get(order.name) is not running:
            return []  # it was preempted before
        del self._running[order.cluster][order.name]
        machines = self._machines[order.cluster]
        outcome = self._outcome(course, attempt)
        if outcome is not None and not attempt.told and attempt.fault is not None:
            attempt = replace(attempt, fault=replace(attempt.fault, told=True))
        told: list[Attempt | Over] = [attempt]
        keeps = outcome is None and "cheap_recovery" in order.remedies and attempt.outcome == "failed"
        if not keeps:
            machines.give_back(running.hosts)
        if outcome is not None:
            del self._open[order.name]
            told.append(Over(order, attempt.end + US + int(4 * US * fraction(order.seed, "over")), outcome))
        else:
            self._again(course, attempt, now)
            if keeps:
                start = self._planner.wait(course, now, machines.cluster.scheduler_s / 5)
                self._begin(course, machines, running.hosts, start, kept=True)
            else:
                self._at(course.queued, lambda now: self._queue(course, now))
        self._grant(machines, now)
        return told

    def _outcome(self, course: Course, attempt: Attempt) -> str | None:
        """How the job ended with an attempt; None where it goes on."""
        if attempt.outcome in ("succeeded", "cancelled"):
            return attempt.outcome
        if attempt.fault is not None and attempt.fault.cause in OWN:
            course.own_faults += 1
        gave_up = course.own_faults > self._scenario.retries or course.number + 1 >= _MOST_ATTEMPTS
        return "failed" if gave_up else None

    def _again(self, course: Course, attempt: Attempt, now: int) -> None:
        """Send a job back to wait for its next attempt."""
        course.since = attempt.end
        course.queued = now + 2 * US + int(28 * US * fraction(course.order.seed, course.number, "again"))
        course.number += 1
        course.position = attempt.resume
        course.passed = max(course.passed, attempt.reached)
        course.compiled |= attempt.trained
        course.trigger = "preemption" if attempt.outcome == "preempted" else "failure"
        self._tell(course.order.name, course.since)

    def _storms(self, cluster: Cluster) -> None:
        """Plan when GPUs of a cluster are taken: by storms, one after the other, and for planned work."""
        chance = dice(self._seed, "storms", cluster.name)

        def following(now: int) -> list[Attempt | Over]:
            if now < self._scenario.end:
                share = cluster.storm_share * chance.uniform(0.3, 1)
                self._hold(cluster, now, int(chance.expovariate(1 / cluster.storm_h) * HOUR), share, "capacity")
                self._at(now + int(chance.expovariate(cluster.storms_per_week / 7) * DAY), following)
            return []

        if cluster.storms_per_week:
            self._at(self._scenario.begin + int(chance.expovariate(cluster.storms_per_week / 7) * DAY), following)
        for work in self._scenario.maintenance:
            if work.cluster == cluster.name:
                begin = self._scenario.begin + int(work.day * DAY)
                self._hold(cluster, begin, int(work.hours * HOUR), work.share, "maintenance")

    def _hold(self, cluster: Cluster, ts: int, length: int, share: float, cause: str) -> None:
        machines = self._machines[cluster.name]
        hosts = int(machines.total * share)

        def begin(now: int) -> list[Attempt | Over]:
            machines.limit -= hosts
            self._preempt(cluster.name, machines.used - machines.limit, now, cause)
            self._at(now + length, end)
            return []

        def end(now: int) -> list[Attempt | Over]:
            machines.limit += hosts
            self._grant(machines, now)
            return []

        self._at(ts, begin)

    def _preempt(self, cluster: str, hosts: int, now: int, cause: str) -> None:
        """Preempt attempts of a cluster until so many hosts are free."""
        running = self._running[cluster]
        chance = dice(self._seed, "preempt", cluster, now)
        for name in choose({name: each.attempt for name, each in running.items()}, hosts, now, chance):
            each = running[name]
            fault = Fault(now, now + _GRACE, "killed", "preempted", cause, 0, True)
            self._run(_Running(each.course, replace(each.attempt, fault=fault), each.hosts))
