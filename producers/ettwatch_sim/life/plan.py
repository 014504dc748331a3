"""Plans an attempt at the moment when it gets its hardware: everything that follows, unless it is preempted."""

from dataclasses import dataclass, field
from math import exp
from random import Random
from typing import Final

from ettwatch_sim.facts import Injected
from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.dice import US, dice, fraction
from ettwatch_sim.life.faults import Fault, natural
from ettwatch_sim.life.inject import Here
from ettwatch_sim.life.loop import FIRST_STEP, Loop, Pace, run
from ettwatch_sim.life.order import Order
from ettwatch_sim.life.remedies import LOCAL_CACHE, RECOMPILES_LEFT, SHARED_CACHE, best_interval
from ettwatch_sim.life.scenario import Scenario
from ettwatch_sim.life.startup import Conditions, Startup, start_up

_MOST_VERSIONS: Final = 10_000
"""Of how many versions it is remembered that they are compiled."""


@dataclass(slots=True)
class Course:
    """How far a job is.

    Attributes:
        order: The job.
        since: From when on it waits for its next attempt (µs).
        queued: When it was put into the queue (µs).
        number: Its next attempt.
        position: From where that goes on.
        passed: The highest position that was told.
        compiled: Whether an attempt has compiled.
        own_faults: How often it failed by its own code or configuration.
        trigger: Why the next attempt is started.
        hosts: The hosts that it keeps; None if it keeps none.
        outcome: How it ended.
    """

    order: Order
    since: int
    queued: int
    number: int = 0
    position: int = 0
    passed: int = 0
    compiled: bool = False
    own_faults: int = 0
    trigger: str = "initial"
    hosts: list[int] | None = None
    outcome: str = ""


@dataclass(slots=True)
class Planner:
    """Plans attempts; remembers what is compiled."""

    scenario: Scenario
    injected: list[Injected]
    _filled: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def wait(self, course: Course, granted: int, scheduler_s: float) -> int:
        """Return when a job that was granted its hosts at `granted` has them."""
        order = course.order
        luck = fraction(order.seed, course.number, "wait")
        latency = int(scheduler_s * 4 ** (luck - 0.5) * US)
        here = self._here(order)
        waited = granted + latency - course.queued
        return course.queued + max(1, int(waited * here.queue(granted)))

    def attempt(self, course: Course, start: int, hosts: tuple[str, ...], slow: str | None, *, kept: bool) -> Attempt:
        """Plan the attempt that begins at `start` (µs) on some hosts."""
        order, number = course.order, course.number
        chance = dice(order.seed, number)
        here = self._here(order)
        factor = self._slow_factor(order) if slow else 1.0
        named, late = here.on_hosts(hosts, start)
        cached = self._cached(course, chance, start, here)
        how = Conditions(
            remedies=order.remedies,
            again=number > 0,
            kept=kept,
            cached=cached,
            factor=here.stages(start, order.team.start_up),
            slow=lambda stage: factor * late(stage),
        )
        startup = start_up(order.model, chance, start, how)
        fault = self._fault(course, chance, start, startup, here, len(hosts))
        loop = self._loop(course, chance, startup, fault, here, factor)
        if fault is not None and loop.end is not None and fault.ts >= loop.end:
            fault = None
        after = loop.end if loop.end is not None else start
        shutdown = self._shutdown(order, chance, after, here)
        plan = Attempt(
            order=order,
            number=number,
            since=course.since,
            queued=course.queued,
            start=start,
            trigger=course.trigger,
            hosts=hosts,
            slow=named or slow,
            cached=cached,
            position=course.position,
            passed=course.passed,
            startup=startup,
            loop=loop,
            shutdown=shutdown,
            fault=fault,
        )
        if plan.trained:
            key = (order.team.name, order.model.name, order.version)
            self._filled[key] = min(self._filled.get(key, startup.first_batch), startup.first_batch)
            if len(self._filled) > _MOST_VERSIONS:
                del self._filled[next(iter(self._filled))]
        return plan

    def _slow_factor(self, order: Order) -> float:
        return next(each.slow_factor for each in self.scenario.clusters if each.name == order.cluster)

    def _here(self, order: Order) -> Here:
        return Here(self.injected, order.team.name, order.model.name, order.cluster)

    def _cached(self, course: Course, chance: Random, start: int, here: Here) -> bool:
        order = course.order
        luck, cold = chance.random(), chance.random()
        if cold < here.cold(start):
            return False
        if "compile_cache" in order.remedies:
            filled = self._filled.get((order.team.name, order.model.name, order.version))
            return filled is not None and filled <= start and luck < SHARED_CACHE
        return course.compiled and luck < LOCAL_CACHE

    def _fault(
        self, course: Course, chance: Random, start: int, startup: Startup, here: Here, hosts: int
    ) -> Fault | None:
        order, model, scenario = course.order, course.order.model, self.scenario
        fault = natural(
            chance,
            start,
            startup.first_batch - start,
            gpus=model.gpus,
            hosts=hosts,
            gpu_mtbf_h=model.gpu_mtbf_h,
            job_mtbf_h=model.job_mtbf_h,
            bad_starts=model.bad_starts,
            times=here.failures(order.team.failures),
            silent=scenario.silent_deaths,
            hang_s=scenario.hang_timeout_s,
            remedies=order.remedies,
        )
        if order.cancel is not None and order.cancel <= fault.ts:
            ts = max(order.cancel, start + US)
            return Fault(ts, ts + 5 * US, "killed", "cancelled", "unknown", 0, True)
        return fault

    def _loop(
        self, course: Course, chance: Random, startup: Startup, fault: Fault | None, here: Here, factor: float
    ) -> Loop:
        order, model = course.order, course.order.model
        remedies = order.remedies
        blocking_s = model.stage_s if "async_checkpoints" in remedies else model.stage_s + model.upload_s
        every_s = model.save_every_s
        if "save_interval" in remedies:
            every_s = best_interval(blocking_s, 3_600 / (model.failures_per_hour * order.team.failures))
        begin = startup.first_batch
        luck = exp(0.3 * chance.gauss())
        stall = model.data_stall * luck * here.stage("wasted_training.data_stall", begin)
        pace = Pace(
            rate=int(model.samples_per_s / (1 + (factor - 1) / 5)),
            stall=int(min(0.9, stall) * 1_000_000),
            save_every=int(every_s * US),
            save=int(blocking_s * US),
            upload=int(model.upload_s * US) if "async_checkpoints" in remedies else 0,
            evaluate_every=int(model.evaluate_every_s * US),
            evaluate=int(model.evaluate_s * US),
            recompiles=_recompiles(chance, model.recompiles, marked="dynamic_shapes" in remedies),
            recompile=int(model.recompile_s * US),
            report_every=int(self.scenario.report_every_s / 3 * US),
            luck=chance.randrange(251),
        )
        return run(begin, course.position, order.target, pace, None if fault is None else fault.ts, here.pause)

    def _shutdown(self, order: Order, chance: Random, ts: int, here: Here) -> tuple[tuple[str, int], ...]:
        model = order.model
        lengths = {
            "shutdown.final_checkpoint": (model.stage_s + model.upload_s) * here.saves(ts),
            "shutdown.model_publish": 0 if "standalone_publishing" in order.remedies else model.publish_s,
            "shutdown.teardown": model.teardown_s,
        }
        out = []
        for stage, seconds in lengths.items():
            luck = exp(0.25 * chance.gauss())
            if seconds > 0:
                out.append((stage, max(1, int(seconds * luck * here.stage(stage, ts) * US))))
        return tuple(out)


def _recompiles(chance: Random, mean: float, *, marked: bool) -> tuple[int, ...]:
    """After how much free running (µs) it compiles again: soon after the start, and ever less often."""
    found = []
    budget = chance.expovariate(1.0)
    while budget < mean:
        at = FIRST_STEP + US + int(chance.expovariate(1 / 1_800) * US)
        if chance.random() < RECOMPILES_LEFT or not marked:
            found.append(at)
        budget += chance.expovariate(1.0)
    return tuple(sorted(set(found)))
