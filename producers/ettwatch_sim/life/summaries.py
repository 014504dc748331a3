"""What a pipeline would say of a fleet, without the events."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypedDict

from ettwatch_sim.facts import Fact, Failure, Hours, JobDone, Start
from ettwatch_sim.life.account import EFFECTIVE, Account
from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.charge import Piece, add
from ettwatch_sim.life.dice import HOUR, US
from ettwatch_sim.life.faults import OWN
from ettwatch_sim.life.fleet import Fleet, Over
from ettwatch_sim.life.scenario import Scenario


def summaries(seed: int, scenario: Scenario) -> Iterator[Fact]:
    """Yield what the pipeline would say of each start, failure, finished job and hour of a fleet.

    They come by time: starts at their first batch, failures and jobs at their end, hours when they are over.
    The same seed and scenario give `simulate` the very same fleet.
    """
    fleet = Fleet(seed, scenario)
    books = _Books()
    stop = None if scenario.drain else scenario.end
    for item in fleet.run():
        books.write(item)
        yield from books.until(fleet.settled, stop)
        if stop is not None and fleet.settled >= stop:
            return
    yield from books.until(None, stop)


@dataclass(slots=True)
class _Job:
    """What is known of a live job (µs)."""

    last: Account | None = None
    attempts: int = 0
    stages: dict[str, int] = field(default_factory=dict)
    tts: int | None = None
    ttr: list[int] = field(default_factory=list)
    recovery: int = 0
    nof: int = 0
    nof_infra: int = 0
    nof_preempted: int = 0
    unsaved: int = 0


class _Books:
    """Facts that wait until nothing earlier can come."""

    def __init__(self) -> None:
        self._jobs: defaultdict[str, _Job] = defaultdict(_Job)
        self._facts: list[tuple[int, int, Fact]] = []
        self._hours: dict[int, dict[tuple[str, str, str], dict[str, int]]] = {}
        self._count = 0

    def write(self, item: Attempt | Over) -> None:
        """Take in what ended."""
        if isinstance(item, Attempt):
            self._attempt(item)
        else:
            self._over(item)

    def until(self, settled: int | None, stop: int | None) -> Iterator[Fact]:
        """Yield what is settled, and before `stop`."""
        while True:
            fact = self._facts[0][0] if self._facts else None
            hour = min(self._hours) + HOUR if self._hours else None
            at = min((t for t in (fact, hour) if t is not None), default=None)
            if at is None or (settled is not None and at > settled) or (stop is not None and at > stop):
                return
            if at == fact:
                yield heapq.heappop(self._facts)[2]
            else:
                yield from self._hour(at - HOUR)

    def _hour(self, begin: int) -> Iterator[Hours]:
        for (team, model, cluster), stages in sorted(self._hours.pop(begin).items()):
            gpu_s = {stage: us / US for stage, us in sorted(stages.items()) if us}
            yield Hours(ts=begin, team=team, model=model, cluster=cluster, gpu_s=gpu_s)

    def _tell(self, fact: Fact) -> None:
        self._count += 1
        heapq.heappush(self._facts, (fact.ts, self._count, fact))

    def _attempt(self, attempt: Attempt) -> None:
        job, account = self._jobs[attempt.order.name], Account(attempt)
        last = job.last
        before = None if last is None else last.attempt
        batch = attempt.startup.first_batch
        reached = batch if attempt.trained else attempt.end
        if before is None:
            job.tts = batch - attempt.start if attempt.trained else None
        else:
            job.recovery += reached - before.interruption
            if attempt.trained:
                job.ttr.append(batch - before.interruption)
        if attempt.trained:
            self._tell(_start(account, last))
        if attempt.failed:
            cause = attempt.fault.cause if attempt.fault and attempt.told else "unknown"
            self._tell(_failure(attempt, cause))
            job.nof += 1
            job.nof_infra += cause not in OWN
            job.nof_preempted += attempt.outcome == "preempted"
            job.unsaved += account.unsaved
        add(job.stages, account.waiting)
        for stage, length in account.stages.items():
            job.stages[stage] = job.stages.get(stage, 0) + length
        job.last = account
        job.attempts += 1
        self._spend(attempt, [*account.waiting, *account.opening])
        if attempt.trained:
            self._spend(attempt, account.closing)
            self._loop(account)

    def _over(self, over: Over) -> None:
        job = self._jobs.pop(over.order.name)
        assert job.last is not None
        last = job.last.attempt
        rest = Piece(last.end, over.ts, "scheduling" if last.failed else "shutdown")
        add(job.stages, [rest])
        self._spend(last, [rest])
        if last.failed:
            job.recovery += over.ts - last.interruption
        gpus, e2e = last.gpus, over.ts - over.order.t0
        effective = job.stages.get(EFFECTIVE, 0)
        waited = sum(us for stage, us in job.stages.items() if stage.startswith("scheduling"))
        self._tell(
            JobDone(
                ts=over.ts,
                t0=over.order.t0,
                **_place(last),
                attempts=job.attempts,
                outcome=over.outcome,
                e2e_s=e2e / US,
                effective_s=effective / US,
                tts_s=None if job.tts is None else job.tts / US,
                ttr_s=tuple(us / US for us in job.ttr),
                recovery_s=job.recovery / US,
                nof=job.nof,
                nof_infra=job.nof_infra,
                nof_preempted=job.nof_preempted,
                stages={stage: us / US for stage, us in job.stages.items() if us},
                gpu_held_s=(e2e - waited) * gpus / US,
                gpu_e2e_s=e2e * gpus / US,
                gpu_effective_s=effective * gpus / US,
                unsaved_s=job.unsaved / US,
            )
        )

    def _spend(self, attempt: Attempt, pieces: Iterable[Piece]) -> None:
        """Spread pieces over hours."""
        gpus, last = attempt.gpus, -1
        for start, end, stage in pieces:
            at = start
            while at < end:
                hour = at - at % HOUR
                until = min(end, hour + HOUR)
                if hour != last:
                    sums, last = self._sums(attempt, hour), hour
                sums[stage] = sums.get(stage, 0) + (until - at) * gpus
                at = until

    def _loop(self, account: Account) -> None:
        gpus = account.attempt.gpus
        for hour, stages in account.loop_hours:
            sums = self._sums(account.attempt, hour)
            for stage, length in stages.items():
                sums[stage] = sums.get(stage, 0) + length * gpus

    def _sums(self, attempt: Attempt, hour: int) -> dict[str, int]:
        order = attempt.order
        places = self._hours.get(hour)
        if places is None:
            places = self._hours[hour] = {}
        key = (order.team.name, order.model.name, order.cluster)
        sums = places.get(key)
        if sums is None:
            sums = places[key] = {}
        return sums


class _Place(TypedDict):
    team: str
    model: str
    cluster: str
    job: str
    gpus: int


def _place(attempt: Attempt) -> _Place:
    order = attempt.order
    return _Place(
        team=order.team.name, model=order.model.name, cluster=order.cluster, job=order.name, gpus=attempt.gpus
    )


def _start(account: Account, last: Account | None) -> Start:
    attempt = account.attempt
    batch = attempt.startup.first_batch
    sums: dict[str, int] = {}
    add(sums, account.opening)
    since = attempt.start
    if last is not None:
        since = last.attempt.interruption
        add(sums, account.waiting)
        if last.attempt.failed and last.attempt.trained:
            add(sums, last.closing)
    return Start(
        ts=batch,
        **_place(attempt),
        host=attempt.slow or attempt.hosts[0],
        attempt=attempt.number,
        first=last is None,
        seconds=(batch - since) / US,
        stages={stage: us / US for stage, us in sums.items() if us},
        cache_hit=attempt.cached,
    )


def _failure(attempt: Attempt, cause: str) -> Failure:
    fault = attempt.fault
    assert fault is not None
    return Failure(
        ts=attempt.end,
        **_place(attempt),
        attempt=attempt.number,
        cause=cause,
        gpu_hours_before=(attempt.end - attempt.start) * attempt.gpus / HOUR,
        outcome=attempt.outcome,
        host=attempt.hosts[fault.host],
        trained=attempt.trained,
    )
