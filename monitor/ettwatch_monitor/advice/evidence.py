"""The arithmetic behind a remedy: what was counted in the jobs of a team, in plain lines."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from ettwatch_monitor.advice.amounts import amount
from ettwatch_monitor.advice.change import BEST, Change, Knobs
from ettwatch_monitor.advice.fleet import Fleet, late_host
from ettwatch_monitor.advice.life import Attempt, Life
from ettwatch_monitor.advice.observe_loop import SAVE

_S = 1_000_000
_GPU_H = 3_600 * _S
_BEST = Knobs((Change(save_interval_s=BEST),))

Shows = Callable[[Fleet, Sequence[Life]], list[str]]
Counts = Callable[[Fleet, Iterable[Life]], int]


def counted(number: int, one: str) -> str:
    """Return a number and a word: `1 job`, `1,200 jobs`."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def _attempts(lives: Iterable[Life]) -> Iterator[tuple[Life, int, Attempt]]:
    for life in lives:
        for i, attempt in enumerate(life.attempts):
            yield life, i, attempt


def _lengths(attempt: Attempt, stage: str) -> Iterator[int]:
    """How long (µs) each stretch took that an attempt spent on a stage, the wait before it too."""
    for node in attempt.startup.nodes:
        if _is(node.stage, stage):
            yield node.end - node.start
    for pause in attempt.loop.pauses if attempt.loop is not None else ():
        if _is(pause.stage, stage):
            yield pause.length
    for piece in (*attempt.tail, *attempt.wait):
        if _is(piece.stage, stage):
            yield piece.length


def _is(stage: str, prefix: str) -> bool:
    return stage == prefix or stage.startswith(f"{prefix}.")


def stage(name: str, *, later: bool = False) -> Shows:
    """How often a stage was, how long, and on how many GPUs."""

    def shows(_: Fleet, lives: Sequence[Life]) -> list[str]:
        found = [
            (us, attempt.gpus)
            for _, i, attempt in _attempts(lives)
            if i > 0 or not later
            for us in _lengths(attempt, name)
        ]
        if not found:
            return [f"no {name}"]
        total = sum(us * gpus for us, gpus in found) / _GPU_H
        mean = sum(us for us, _ in found) / len(found) / _S
        of = " of later attempts" if later else ""
        return [f"{len(found):,} x {name}{of}, {mean:,.0f} s each on average: {amount(total)}"]

    return shows


def segments(name: str) -> Counts:
    """How often a stage was."""
    return lambda _, lives: sum(1 for _, _, attempt in _attempts(lives) for _ in _lengths(attempt, name))


def colds(kind: str) -> Counts:
    """How many compilations were cold whose key had been compiled before."""
    return lambda fleet, lives: sum(1 for life, _, a in _attempts(lives) if fleet.was_known(life, a, kind == "fleet"))


def compiled_again(fleet: Fleet, lives: Sequence[Life]) -> list[str]:
    """How many compilations were cold, and of how many the key was known."""
    cold = [(life, a) for life, _, a in _attempts(lives) if a.compiled and not all(a.compiled.values())]
    own = [a for life, a in cold if fleet.was_known(life, a, everywhere=False)]
    any_ = [a for life, a in cold if fleet.was_known(life, a, everywhere=True)]
    spent = sum(us * a.gpus for a in any_ for us in _lengths(a, "pt2_compilation")) / _GPU_H
    return [
        f"{counted(len(cold), 'cold compilation')}; the key of {len(any_):,} was compiled before, "
        f"of {len(own):,} by the same job",
        f"those {len(any_):,} took {amount(spent)}, what ran beside other stages included",
    ]


def _saves(lives: Iterable[Life]) -> list[tuple[int, int]]:
    """How long (µs) each save of the loop blocked, on how many GPUs. Those before and after it gain nothing."""
    return [(p.length, a.gpus) for _, _, a in _attempts(lives) if a.loop for p in a.loop.pauses if p.stage == SAVE]


def blocking_saves(_: Fleet, lives: Iterable[Life]) -> int:
    """How many saves blocked the loop."""
    return len(_saves(lives))


def saves(_: Fleet, lives: Sequence[Life]) -> list[str]:
    """How often and how long saves blocked."""
    if not (lengths := _saves(lives)):
        return ["no blocking save"]
    mean, whole = sum(us for us, _ in lengths) / len(lengths) / _S, sum(us * gpus for us, gpus in lengths) / _GPU_H
    return [
        f"{counted(len(lengths), 'save')} blocked {mean:,.1f} s each: {amount(whole)}; "
        f"a fifth of it stays: {mean / 5:,.1f} s each"
    ]


def intervals(fleet: Fleet, lives: Iterable[Life]) -> list[tuple[Life, float, float]]:
    """Return, for each kind of job that saves: one of them, the free running between two saves now, and at best (s)."""
    found = []
    for life in {(life.team, life.model, life.gpus): life for life in lives}.values():
        rhythm, best = fleet.rhythms(life).get(SAVE), fleet.interval(life, _BEST)
        if rhythm is not None and best is not None:
            found.append((life, rhythm.every / _S, best / _S))
    return found


def interval(fleet: Fleet, lives: Sequence[Life]) -> list[str]:
    """The interval as it was, and the best one."""
    lines = []
    for life, now, best in intervals(fleet, lives):
        blocking, mtbf = fleet.rhythms(life)[SAVE].length / _S, fleet.mtbf(life) / _S
        bounds = "" if abs(best - sqrt(2 * blocking * mtbf)) < 1 else ", within 1 min and 2 h"
        lines.append(
            f"{life.model or 'no model'} on {life.gpus} GPUs: every {now:,.0f} s; best is "
            f"sqrt(2 x {blocking:,.1f} s x {mtbf:,.0f} s){bounds} = {best:,.0f} s"
        )
    return sorted(lines) or ["no blocking save"]


def failures(outcomes: Sequence[str]) -> Counts:
    """How many attempts failed that had trained; of some outcomes only, where any is named."""
    return lambda _, lives: sum(
        1 for _, _, a in _attempts(lives) if a.failed and a.loop and (not outcomes or a.outcome in outcomes)
    )


def preempted(_: Fleet, lives: Sequence[Life]) -> list[str]:
    """What preemptions discarded."""
    lost, count = 0.0, 0
    for life in lives:
        trained = [a for a in life.attempts if a.loop is not None]
        for before, after in pairwise(trained):
            if before.outcome == "preempted" and before.loop is not None and after.loop is not None:
                count += 1
                back = max(0, before.loop.reached - after.loop.start)
                done = max(1, before.loop.reached - before.loop.start)
                lost += min(1.0, back / done) * before.loop.free * before.gpus / _GPU_H
    return [f"{counted(count, 'preemption')} discarded {amount(lost)} of training"]


def critical(_: Fleet, lives: Sequence[Life]) -> list[str]:
    """How long start-ups took, and how much of it some stage had all for itself."""
    starts = [a for _, _, a in _attempts(lives) if a.loop is not None]
    if not starts:
        return ["no start-up"]
    mean = sum(a.startup.end for a in starts) / len(starts) / _S
    sums: Counter[str] = Counter()
    for attempt in starts:
        for node in attempt.startup.nodes:
            sums[node.stage] += node.end - node.start
    parts = ", ".join(f"{name} {us / len(starts) / _S:,.0f} s" for name, us in sums.most_common(5))
    return [f"{counted(len(starts), 'start-up')} of {mean:,.0f} s on average; longest: {parts}"]


def starts(_: Fleet, lives: Iterable[Life]) -> int:
    """How many attempts trained."""
    return sum(1 for _, _, a in _attempts(lives) if a.loop is not None)


def late(_: Fleet, lives: Iterable[Life]) -> int:
    """How many attempts had a straggler."""
    return sum(1 for _, _, a in _attempts(lives) if late_host(a) is not None)


class Slow(NamedTuple):
    """A host that keeps others waiting: in how many attempts, and of which jobs."""

    host: str
    attempts: int
    jobs: tuple[str, ...]


def slow_hosts(fleet: Fleet, lives: Iterable[Life]) -> tuple[Slow, ...]:
    """Return the hosts that keep others waiting, those of the most attempts first."""
    seen: defaultdict[str, list[str]] = defaultdict(list)
    for life, _, attempt in _attempts(lives):
        found = fleet.straggler(life, attempt)
        if found is not None:
            seen[found[0]].append(life.job)
    slow = [Slow(host, len(jobs), tuple(dict.fromkeys(jobs))) for host, jobs in seen.items()]
    return tuple(sorted(slow, key=lambda each: (-each.attempts, each.host)))


def stragglers(fleet: Fleet, lives: Sequence[Life]) -> list[str]:
    """Which hosts were late, and in how many attempts."""
    hosts = slow_hosts(fleet, lives)
    if not hosts:
        return ["no host was late again and again"]
    slower = [found[1] for life, _, a in _attempts(lives) if (found := fleet.straggler(life, a)) is not None]
    named = ", ".join(f"{each.host} ({each.attempts})" for each in hosts[:5])
    loop = 100 * (sum(slower) / len(slower) - 1)
    waited = counted(sum(each.attempts for each in hosts), "attempt")
    return [f"{waited} waited for one host: {named}; loops were {loop:.1f} % slower on average"]


def detection(_: Fleet, lives: Sequence[Life]) -> list[str]:
    """How long it took until failures were noticed."""
    tails = [(sum(p.length for p in a.tail), a.gpus) for _, _, a in _attempts(lives) if a.failed and a.loop]
    long = [(us, gpus) for us, gpus in tails if us > 60 * _S]
    if not long:
        return [f"{counted(len(tails), 'failure')}, none noticed later than 60 s after the last advance"]
    beyond = sum((us - 60 * _S) * gpus for us, gpus in long) / _GPU_H
    mean = sum(us for us, _ in long) / len(long) / _S
    return [
        f"{len(long):,} of {len(tails):,} failures were noticed later than 60 s after the last advance, "
        f"{mean:,.0f} s on average: {amount(beyond)} beyond"
    ]
