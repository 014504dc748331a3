"""What ends an attempt before its work is done: when, why, and who notices how soon."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import exp
from random import Random
from typing import Final, Literal, NamedTuple

from ettwatch_sim.life.dice import HOUR, US
from ettwatch_sim.life.remedies import DETECTION_LEFT, Remedy

How = Literal["clean", "killed", "stuck"]
"""`clean`: the trainer itself tells of it. `killed`: it falls silent at once. `stuck`: it lives on and waits."""


class Kind(NamedTuple):
    """A kind of fault: why, with what weight, how the trainer ends, and after how many seconds that is noticed."""

    cause: str
    weight: float
    how: How
    noticed_s: float


HANG_S: Final = -1.0
"""Stands for the time-out of the scenario."""

BY_GPUS: Final = (
    Kind("hardware", 0.22, "killed", 90),
    Kind("hardware", 0.16, "stuck", 420),
    Kind("network", 0.18, "stuck", 600),
    Kind("storage", 0.08, "clean", 15),
    Kind("host_memory", 0.10, "killed", 25),
    Kind("gpu_memory", 0.08, "clean", 8),
    Kind("timeout", 0.10, "stuck", HANG_S),
    Kind("unknown", 0.08, "killed", 60),
)
"""Faults that are the more frequent the more GPUs a job has."""

BY_JOB: Final = (
    Kind("dependency", 0.45, "clean", 20),
    Kind("storage", 0.25, "clean", 15),
    Kind("user_code", 0.15, "clean", 6),
    Kind("host_memory", 0.15, "killed", 25),
)
"""Faults that do not depend on the size of a job."""

AT_START: Final = (
    Kind("network", 0.30, "stuck", 300),
    Kind("config", 0.15, "clean", 4),
    Kind("user_code", 0.15, "clean", 6),
    Kind("hardware", 0.20, "killed", 60),
    Kind("dependency", 0.20, "clean", 10),
)
"""Faults of start-ups."""

ALL_CAUSES: Final = tuple(sorted({kind.cause for kind in (*BY_GPUS, *BY_JOB, *AT_START)}))

_NEVER_H: Final = 1_000_000

OWN: Final = ("user_code", "config")
"""Causes that a repetition does not cure."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The end of an attempt that was not its own.

    Attributes:
        ts: From when on nothing moves (µs).
        end: When the attempt is over (µs).
        how: How the trainer ends.
        outcome: `failed`, `preempted` or `cancelled`.
        cause: Why.
        host: Which host of the attempt is to blame, counted from 0.
        told: Whether anybody tells of the end.
    """

    ts: int
    end: int
    how: How
    outcome: str
    cause: str
    host: int
    told: bool


class Times(NamedTuple):
    """A rate of failures by cause that changes at some times: `factor(cause, ts)`, and those times (µs), rising."""

    factor: Callable[[str, int], float]
    changes: Sequence[int]


def natural(
    dice: Random,
    start: int,
    start_up_us: int,
    *,
    gpus: int,
    hosts: int,
    gpu_mtbf_h: float,
    job_mtbf_h: float,
    bad_starts: float,
    times: Times,
    silent: float,
    hang_s: float,
    remedies: Collection[Remedy],
) -> Fault:
    """Draw the fault that would end an attempt if nothing else did; it may lie far away.

    Always throws the same dice, so that remedies and injections move the fault of this attempt only.

    Args:
        dice: Of this attempt.
        start: Its start (µs).
        start_up_us: How long its start-up takes (µs).
        gpus, hosts: Its size.
        gpu_mtbf_h, job_mtbf_h, bad_starts: See `Model`; the team's factor is in them.
        times: Injections.
        silent: Share of killed attempts of whose end nobody tells.
        hang_s: After how many seconds a hang is ended.
        remedies: What is switched on.
    """
    found = [
        _first(dice, start, BY_GPUS, gpus / gpu_mtbf_h, times),
        _first(dice, start, BY_JOB, 1 / job_mtbf_h, times),
    ]
    luck, where, which = dice.random(), dice.random(), dice.random()
    kind, weight = _choose(AT_START, which, times, start)
    if luck < bad_starts * weight:
        found.append((start + int(start_up_us * where), kind))
    ts, kind = min(found, key=lambda each: each[0])
    noticed = (hang_s if kind.noticed_s == HANG_S else kind.noticed_s) * US
    if "cheap_recovery" in remedies and kind.how != "clean":
        noticed *= DETECTION_LEFT
    noticed *= exp(0.3 * dice.gauss())
    told = dice.random() >= silent or kind.how != "killed"
    return Fault(ts, ts + max(US, int(noticed)), kind.how, "failed", kind.cause, dice.randrange(hosts), told)


def _first(dice: Random, start: int, kinds: Sequence[Kind], per_hour: float, times: Times) -> tuple[int, Kind]:
    """When the first fault of some kinds comes, and which it is: their rates change with time."""
    budget, which = dice.expovariate(1.0), dice.random()
    at = start
    for change in (*(t for t in times.changes if t > start), None):
        rate = per_hour * sum(kind.weight * times.factor(kind.cause, at) for kind in kinds)
        reached = at + int(min(budget / rate, _NEVER_H) * HOUR) if rate > 0 else at + _NEVER_H * HOUR
        if change is None or reached <= change:
            return reached, _choose(kinds, which, times, at)[0]
        budget -= rate * (change - at) / HOUR
        at = change
    raise AssertionError("the last stretch has no end")


def _choose(kinds: Sequence[Kind], luck: float, times: Times, ts: int) -> tuple[Kind, float]:
    """Choose a kind by weight and factor; return it and how much more frequent all together are."""
    weights = [kind.weight * times.factor(kind.cause, ts) for kind in kinds]
    total = sum(weights)
    rest = luck * total
    for kind, weight in zip(kinds, weights, strict=True):
        rest -= weight
        if rest < 0:
            return kind, total
    return kinds[-1], total
