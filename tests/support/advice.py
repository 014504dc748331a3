"""Fleets for tests of advice: simulated, and taken apart from their events alone."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf, sqrt
from typing import NamedTuple

from ettwatch_monitor.advice import Change, Fleet, Replays
from ettwatch_schemas import Event
from ettwatch_sim import JobDone
from ettwatch_sim.life import Scenario, alone, simulate, summaries


def jobs_of(seed: int, scenario: Scenario) -> dict[str, list[Event]]:
    """The events of a simulated fleet, by job."""
    jobs: defaultdict[str, list[Event]] = defaultdict(list)
    for event in simulate(seed, scenario):
        jobs[event.job].append(event)
    return jobs


def observed(seed: int, scenario: Scenario) -> Fleet:
    """A simulated fleet as advice sees it."""
    fleet = Fleet()
    for job, events in jobs_of(seed, scenario).items():
        fleet.add(job, events)
    return fleet


def quiet(model: str, days: float, **fields: object) -> Scenario:
    """One model on enough hardware, without storms: what happens to a job depends on no other."""
    cluster = alone(model).clusters[0]
    own = cluster.model_copy(update={"gpus": cluster.gpus * 3, "storms_per_week": 0, "slow_hosts": 0})
    return alone(model).but(days=days, report_every_s=600, cancelled=0, retries=50, clusters=(own,)).but(**fields)


class Gain(NamedTuple):
    """GPU-hours that come back: as predicted from the fleet before, and as measured in the fleet after."""

    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        """1 where the prediction came true."""
        return self.predicted / self.measured


def gain(before: Fleet, after: Fleet, changes: tuple[Change, ...]) -> Gain:
    """Held GPU-hours that come back."""
    outcome = Replays(before).under(changes)
    predicted = sum(outcome.saved(i).held_gpu_h for i in range(len(outcome.cases)))
    held = [sum(case.summary.gpu_held_s for case in fleet.cases) / 3600 for fleet in (before, after)]
    return Gain(predicted, held[0] - held[1])


def pooled(seeds: Iterable[int], before: Scenario, after: Scenario, changes: tuple[Change, ...]) -> Gain:
    """The gains of several fleets added up: that of a single one may hang on whether a failure came before a save."""
    gains = [gain(observed(seed, before), observed(seed, after), changes) for seed in seeds]
    return Gain(sum(one.predicted for one in gains), sum(one.measured for one in gains))


class Trial(NamedTuple):
    """A remedy to be tried: the fleet without and with it, and what advice is asked.

    Attributes:
        before, after: The fleets.
        changes: What advice is asked.
        waits: Whether waits for hardware count, too.
    """

    before: Scenario
    after: Scenario
    changes: tuple[Change, ...]
    waits: bool = False


def spent(seed: int, scenario: Scenario) -> tuple[float, float]:
    """GPU-hours that a fleet holds, and those with its waits: what its events would tell, without them."""
    done = [fact for fact in summaries(seed, scenario) if isinstance(fact, JobDone)]
    return sum(job.gpu_held_s for job in done) / 3600, sum(job.gpu_e2e_s for job in done) / 3600


def tried(seed: int, trials: Mapping[str, Trial]) -> dict[str, Gain]:
    """The gains of remedies in the fleets of a seed. All dice fall alike with and without a remedy."""
    seen: list[tuple[Scenario, Replays, tuple[float, float]]] = []
    found = {}
    for name, trial in trials.items():
        known = next((each for each in seen if each[0] == trial.before), None)
        if known is None:
            known = trial.before, Replays(observed(seed, trial.before)), spent(seed, trial.before)
            seen.append(known)
        _, replays, was = known
        outcome, then = replays.under(trial.changes), spent(seed, trial.after)
        saved = [outcome.saved(i) for i in range(len(outcome.cases))]
        if trial.waits:
            found[name] = Gain(sum(each.gpu_h for each in saved), was[1] - then[1])
        else:
            found[name] = Gain(sum(each.held_gpu_h for each in saved), was[0] - then[0])
    return found


def added(gains: Sequence[Gain]) -> Gain:
    """The gains of several fleets added up."""
    return Gain(sum(gain.predicted for gain in gains), sum(gain.measured for gain in gains))


def chance(gains: Sequence[Gain]) -> float:
    """The standard error of predicted / measured over several fleets: how far off it may be by luck alone."""
    whole, count = added(gains), len(gains)
    if count < 2 or whole.measured <= 0:
        return inf
    squares = sum((gain.predicted - whole.ratio * gain.measured) ** 2 for gain in gains)
    return sqrt(squares * count / (count - 1)) / whole.measured
