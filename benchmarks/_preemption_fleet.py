"""Simulated fleets in which somebody else chooses whom to preempt, and what came of it.

The simulator asks `choose` for victims when a storm takes GPUs. It is replaced for the length of a run; a rival sees of
a running attempt only what its events have told by then.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

from ettwatch_monitor.preempt import Durable, History, Observed, Running, Times, rank, running_of
from ettwatch_sim.life import Cluster, Remedy, Scenario, Team
from ettwatch_sim.life.account import Account
from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.dice import US, dice
from ettwatch_sim.life.fleet import Fleet

GPUS_A_HOST = 8
MODELS = ("ctr-small", "ranker-small", "retrieval", "ctr-large", "sequence", "ranker-large")


def scenario(days: float, remedies: tuple[Remedy, ...] = ()) -> Scenario:
    """Two clusters, six kinds of jobs of 8 to 128 GPUs, a storm a day on each cluster."""
    return Scenario(
        days=days,
        remedies=remedies,
        clusters=(
            Cluster(name="east", gpus=768, storms_per_week=7, storm_share=0.6, storm_h=2),
            Cluster(name="west", gpus=640, storms_per_week=7, storm_share=0.6, storm_h=2),
        ),
        teams=(
            Team(name="ads", models=("ctr-large", "ctr-small"), jobs_per_day=9),
            Team(name="feed", models=("ranker-large", "ranker-small"), jobs_per_day=4),
            Team(name="search", models=("ranker-small", "retrieval"), jobs_per_day=9),
            Team(name="video", models=("sequence", "retrieval"), jobs_per_day=4),
        ),
    )


@dataclass(slots=True)
class Known:
    """What recoveries and start-ups took so far: of all jobs, and of each."""

    recoveries: History = field(default_factory=History)
    startups: History = field(default_factory=History)
    own_recoveries: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    own_startups: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    durables: defaultdict[str, list[Durable]] = field(default_factory=lambda: defaultdict(list))
    interruptions: dict[str, int] = field(default_factory=dict)

    def ended(self, attempt: Attempt) -> None:
        """Take in an attempt that is over."""
        job, team, model = attempt.order.name, attempt.order.team.name, attempt.order.model.name
        if attempt.trained:
            first = attempt.startup.first_batch
            took = (first - attempt.start) / US
            self.startups.add(team, model, Times(1, took))
            self.own_startups[job].append(took)
            if job in self.interruptions:
                back = (first - self.interruptions[job]) / US
                self.recoveries.add(team, model, Times(1, back))
                self.own_recoveries[job].append(back)
            self.durables[job] += _durables(attempt, attempt.released)
        self.interruptions[job] = attempt.interruption

    def running(self, attempt: Attempt, now: int) -> Running:
        """Return what events have told of a running attempt by `now`."""
        order, loop = attempt.order, attempt.loop
        first = attempt.startup.first_batch
        trains = now > first
        every = loop.pace.report_every
        report = max(first, first + (now - first) // every * every) if trains else None
        free = loop.free_at(report) if report is not None else 0
        seen = Observed(
            job=order.name,
            team=order.team.name,
            model=order.model.name,
            cluster=order.cluster,
            attempt=attempt.number,
            gpus=attempt.gpus,
            as_of=now,
            started=attempt.start,
            first_batch=first if trains else None,
            last_advance=report,
            loop_end=None,
            start_position=attempt.position if trains else None,
            end_position=loop.position_at(report) if report is not None else None,
            trained_s=(free - loop.waited(free)) / US,
            flags=(),
            durables=[*self.durables[order.name], *_durables(attempt, now)],
        )
        key = (order.team.name, order.model.name)
        return running_of(
            seen,
            self.recoveries.expected(*key, self.own_recoveries[order.name]),
            self.startups.expected(*key, self.own_startups[order.name]),
        )


def _durables(attempt: Attempt, now: int) -> list[Durable]:
    return [Durable(d.ts, d.position, d.started, attempt.number) for d in attempt.durables if d.ts <= now]


Choice = Callable[[Mapping[str, Attempt], list[str], int, int, Random, Known], list[str]]
"""Chooses attempts that hold so many hosts together: (running, names to choose from, hosts, now, chance, known)."""


def _first(running: Mapping[str, Attempt], order: list[str], hosts: int) -> list[str]:
    chosen = []
    for name in order:
        if hosts <= 0:
            break
        chosen.append(name)
        hosts -= len(running[name].hosts)
    return chosen


def at_random(
    running: Mapping[str, Attempt], able: list[str], hosts: int, now: int, chance: Random, known: Known
) -> list[str]:
    """Anybody."""
    return _first(running, chance.sample(able, len(able)), hosts)


def youngest_first(
    running: Mapping[str, Attempt], able: list[str], hosts: int, now: int, chance: Random, known: Known
) -> list[str]:
    """Who got its hardware last goes first: the usual rule of schedulers."""
    return _first(running, sorted(able, key=lambda name: (-running[name].start, name)), hosts)


def least_waste(
    running: Mapping[str, Attempt], able: list[str], hosts: int, now: int, chance: Random, known: Known
) -> list[str]:
    """Our policy. Where all together are not enough, all."""
    plan = rank((known.running(running[name], now) for name in able), hosts * GPUS_A_HOST, now)
    return [waste.job.job for waste in plan.chosen] if plan.enough else sorted(able)


WAYS: dict[str, Choice] = {"random": at_random, "youngest first": youngest_first, "least waste": least_waste}


@dataclass(slots=True)
class Storm:
    """One choice: GPUs that were asked for, and by way what it would have freed and discarded (GPU-seconds)."""

    gpus: int
    freed: dict[str, int] = field(default_factory=dict)
    discarded: dict[str, float] = field(default_factory=dict)
    recovering: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """What came of a run, in GPU-seconds.

    Attributes:
        storms: Each choice.
        preempted: How many attempts were preempted.
        freed: GPUs of those, summed up.
        discarded: Training that preemptions discarded.
        recovering: From their last advance (of those that had none: their start) until their jobs trained again.
        effective, held: Of all attempts: training on new data, and from allocation to release.
        unfinished: Jobs that were preempted and never trained again.
    """

    storms: list[Storm] = field(default_factory=list)
    preempted: int = 0
    freed: int = 0
    discarded: float = 0.0
    recovering: float = 0.0
    effective: float = 0.0
    held: float = 0.0
    unfinished: int = 0


@contextmanager
def _choosing(way: Choice, seed: int, known: Known, outcome: Outcome) -> Iterator[None]:
    def choose(running: Mapping[str, Attempt], hosts: int, now: int, chance: Random) -> list[str]:
        able = sorted(name for name, each in running.items() if each.start + US < now < each.frozen)
        if hosts <= 0 or not able:
            return []
        storm = Storm(hosts * GPUS_A_HOST)
        for name, each in WAYS.items():
            chosen = each(running, able, hosts, now, dice(seed, now, name), known)
            storm.freed[name] = sum(running[one].gpus for one in chosen)
            storm.discarded[name] = sum(_discarded(running[one], now) for one in chosen)
            storm.recovering[name] = sum(_recovery(running[one], now) for one in chosen)
        outcome.storms.append(storm)
        return way(running, able, hosts, now, dice(seed, now, "way"), known)

    with patch("ettwatch_sim.life.fleet.choose", choose):
        yield


def _discarded(attempt: Attempt, now: int) -> float:
    """Truth: GPU-seconds of training above the newest durable position."""
    if now <= attempt.startup.first_batch:
        return 0.0
    safe = max((d.position for d in attempt.durables if d.ts <= now), default=attempt.position)
    return max(0, attempt.loop.position_at(now) - safe) / attempt.loop.pace.rate * attempt.gpus


def _recovery(attempt: Attempt, now: int) -> float:
    """Its start-up once more, as long as the one it had, without what it has still to do of that: GPU-seconds."""
    first = attempt.startup.first_batch
    return (min(now, first) - attempt.start) / US * attempt.gpus


def run(seed: int, plan: Scenario, way: str) -> Outcome:
    """Run a fleet in which victims are chosen in this way."""
    known, outcome = Known(), Outcome()
    waiting: dict[str, Attempt] = {}
    since: dict[str, int] = {}
    with _choosing(WAYS[way], seed, known, outcome):
        for item in Fleet(seed, plan).run():
            name = item.order.name
            if not isinstance(item, Attempt):
                outcome.unfinished += waiting.pop(name, None) is not None
                known.durables.pop(name, None)
                continue
            known.ended(item)
            account = Account(item)
            outcome.held += (item.released - item.start) / US * item.gpus
            for _, stages in account.loop_hours if item.trained else ():
                outcome.effective += stages.get("effective_training", 0) / US * item.gpus
            if name in waiting and item.trained:
                outcome.recovering += (item.startup.first_batch - since[name]) / US * item.gpus
                del waiting[name]
            if item.outcome == "preempted":
                outcome.preempted += 1
                outcome.freed += item.gpus
                outcome.discarded += account.unsaved / US * item.gpus
                if name not in waiting:
                    waiting[name], since[name] = item, item.interruption if item.trained else item.start
    return outcome
