"""A fleet as it was observed: the lives of its jobs, and what they say of each other."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from statistics import median
from typing import Final, NamedTuple

from ettwatch_core import JobState, Rules, apply, summarize
from ettwatch_monitor.advice.change import BEST, Change, Knobs
from ettwatch_monitor.advice.further import DRAWS, Draw, Recovery, mean, recoveries
from ettwatch_monitor.advice.life import Attempt, Life
from ettwatch_monitor.advice.observe import FILE_RULES, observe
from ettwatch_monitor.advice.observe_loop import SAVE
from ettwatch_monitor.advice.ran import Rhythm
from ettwatch_monitor.advice.rewrite import Rewritten, rewrite
from ettwatch_monitor.advice.startup import COMPILATION, Hit, is_late
from ettwatch_schemas import Event, JobSummary

HIT_SHARE: Final = 0.97
"""How often a shared cache gives what it holds."""
HIT_LEFT: Final = 0.124
"""What is left of a cold compilation where nobody has seen a warm one (published: -87.6 %)."""
SHORTEST_US: Final = 60_000_000
LONGEST_US: Final = 7_200_000_000
_HOUR: Final = 3_600_000_000
_SHORT: Final = 1_000_000
"""A job that needs so much longer (µs) needs as long as it did."""

Kind = tuple[str | None, str | None, int]
"""Team, model and GPUs: jobs of a kind are alike."""


def kind_of(life: Life) -> Kind:
    """Return the kind of a job."""
    return life.team, life.model, life.gpus


@dataclass(slots=True)
class Case:
    """A job of the fleet.

    Attributes:
        life: Its life.
        summary: What the rules say of it.
        weight: How much it counts: the share of its time in the range that is looked at, times `scale`.
        scale: For how many of its kind it stands; 1 where all were looked at.
    """

    life: Life
    summary: JobSummary
    weight: float = 1.0
    scale: float = 1.0

    @property
    def partly(self) -> bool:
        """Whether a part of it lies outside the range."""
        return self.weight < self.scale * (1 - 1e-9)


class Replayed(NamedTuple):
    """What the rules say of a job laid out anew, and the share of its work that it would not do (negative: more)."""

    summary: JobSummary
    undone: float


@dataclass
class Fleet:
    """Jobs that can be laid out anew.

    Attributes:
        cases: Those jobs.
        rules: By which time is charged.
        skipped: Jobs that have no attempt yet.
        go_on: Called before each job: raises where nobody waits for the answer any more.
    """

    cases: list[Case] = field(default_factory=list)
    rules: Rules = FILE_RULES
    skipped: int = 0
    go_on: Callable[[], object] = lambda: None

    def add(self, job: str, events: Sequence[Event], weight: float = 1.0, scale: float = 1.0) -> None:
        """Take in a job, before the first question; see `Case` for how much it counts."""
        self.go_on()
        seen = observe(job, events, self.rules)
        if seen.life is None:
            self.skipped += 1
        else:
            self.cases.append(Case(seen.life, seen.snap.summary, weight, scale))

    def replay(self, case: Case, changes: Iterable[Change]) -> Replayed:
        """Return what the rules say of a job under changes."""
        self.go_on()
        life, knobs = case.life, Knobs(tuple(change for change in changes if change.of(case.life)))
        made = rewrite(life, knobs, self)
        summary = self._judged(life, made)
        known, mtbf = self._recoveries.get(kind_of(life), ()), self.mtbf(life)
        if made.beyond < _SHORT or not known:
            return Replayed(summary, made.undone)
        courses = []
        for number in range(DRAWS):
            draw = Draw(life, number, mtbf, known)
            fails = (draw.budget(0) or 0) < made.beyond
            courses.append(self._judged(life, rewrite(life, knobs, self, draw)) if fails else summary)
        same = all(course is summary for course in courses)
        return Replayed(summary if same else mean(courses), made.undone)

    def _judged(self, life: Life, made: Rewritten) -> JobSummary:
        state = JobState(life.job)
        for event in made.events:
            apply(state, event, self.rules)
        return summarize(state, self.rules, made.now)

    @cached_property
    def _recoveries(self) -> Mapping[Kind, list[Recovery]]:
        """What failures looked like, by kind of job."""
        found: defaultdict[Kind, list[Recovery]] = defaultdict(list)
        for case in self.cases:
            found[kind_of(case.life)] += recoveries(case.life)
        return {kind: each for kind, each in found.items() if each}

    @cached_property
    def _compiled(self) -> dict[str, int]:
        """When each key was compiled for the first time: at the first batch of who did it."""
        found: dict[str, int] = {}
        for case in self.cases:
            for attempt in case.life.attempts:
                if attempt.loop is not None:
                    at = attempt.start + attempt.startup.end
                    for key in attempt.compiled:
                        found[key] = min(found.get(key, at), at)
        return found

    @cached_property
    def _hits(self) -> Mapping[Kind, dict[str, int]]:
        """How long the stages of warm compilations take, by kind of job."""
        seen: defaultdict[Kind, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for case in self.cases:
            for attempt in case.life.attempts:
                if attempt.loop is not None and attempt.compiled and all(attempt.compiled.values()):
                    for node in attempt.startup.nodes:
                        if node.stage.startswith(COMPILATION):
                            seen[kind_of(case.life)][node.stage].append(node.end - node.start)
        return {
            kind: {stage: round(median(lengths)) for stage, lengths in stages.items()} for kind, stages in seen.items()
        }

    def hit(self, life: Life, attempt: Attempt, knobs: Knobs) -> Hit | None:
        """How an attempt would find compiled code; None if it would not, or did."""
        if not self.was_known(life, attempt, everywhere=knobs.cache == "fleet"):
            return None
        return Hit(HIT_SHARE, self._hits.get(kind_of(life), {}), HIT_LEFT)

    def was_known(self, life: Life, attempt: Attempt, everywhere: bool) -> bool:
        """Whether an attempt compiled what the fleet (else: its job) had compiled before under the same keys."""
        if not attempt.compiled or all(attempt.compiled.values()):
            return False
        if everywhere:
            return all(self._compiled.get(key, attempt.start) < attempt.start for key in attempt.compiled)
        before = {k for a in life.attempts if a.start < attempt.start and a.loop is not None for k in a.compiled}
        return set(attempt.compiled) <= before

    @cached_property
    def _rhythms(self) -> Mapping[Kind, dict[str, Rhythm]]:
        by: defaultdict[Kind, defaultdict[str, list[tuple[int, int, int]]]] = defaultdict(lambda: defaultdict(list))
        for case in self.cases:
            for attempt in case.life.attempts:
                ats: defaultdict[str, list[int]] = defaultdict(list)
                lengths: defaultdict[str, int] = defaultdict(int)
                for pause in attempt.loop.pauses if attempt.loop is not None else ():
                    if not pause.stage.startswith(COMPILATION):
                        ats[pause.stage].append(pause.at)
                        lengths[pause.stage] += pause.length
                for stage, times in ats.items():
                    distinct = sorted(set(times))
                    by[kind_of(case.life)][stage].append((distinct[-1], len(distinct), lengths[stage]))
        out: dict[Kind, dict[str, Rhythm]] = {}
        for kind, stages in by.items():
            out[kind] = {}
            for stage, seen in stages.items():
                count = sum(n for _, n, _ in seen)
                every = sum(last for last, _, _ in seen) // count
                if every > 0:
                    out[kind][stage] = Rhythm(every, sum(length for _, _, length in seen) // count)
        return out

    def rhythms(self, life: Life) -> dict[str, Rhythm]:
        """Pauses that come again and again in jobs like this one."""
        return self._rhythms.get(kind_of(life), {})

    @cached_property
    def _usual(self) -> Mapping[Kind, dict[str, int]]:
        seen: defaultdict[Kind, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for case in self.cases:
            for attempt in case.life.attempts:
                for node in attempt.startup.nodes if attempt.loop is not None else ():
                    seen[kind_of(case.life)][node.stage].append(node.end - node.start)
        return {kind: {stage: round(median(all_)) for stage, all_ in stages.items()} for kind, stages in seen.items()}

    def usual(self, life: Life) -> Mapping[str, int]:
        """How long stages of start-up take (µs) in jobs like this one."""
        return self._usual.get(kind_of(life), {})

    @cached_property
    def _mtbf(self) -> Mapping[Kind, int]:
        """Time in loops (µs) between two failures of them; without any failure, all the time seen."""
        ran: defaultdict[Kind, int] = defaultdict(int)
        failed: defaultdict[Kind, int] = defaultdict(int)
        for case in self.cases:
            for attempt in case.life.attempts:
                ran[kind_of(case.life)] += attempt.length - attempt.startup.end
                failed[kind_of(case.life)] += attempt.failed and attempt.loop is not None
        return {kind: time // max(1, failed[kind]) for kind, time in ran.items()}

    def mtbf(self, life: Life) -> int:
        """Time in loops (µs) between two failures of jobs like this one."""
        return self._mtbf[kind_of(life)]

    def interval(self, life: Life, knobs: Knobs) -> int | None:
        """The free running between two saves (µs) that is asked for; None: as it was."""
        asked = knobs.save_interval_s
        if asked is None:
            return None
        if asked != BEST:
            return max(1_000_000, round(float(asked) * 1_000_000))
        rhythm = self.rhythms(life).get(SAVE)
        if rhythm is None:
            return None
        blocking = rhythm.length * (1.0 if knobs.save_blocking is None else knobs.save_blocking)
        best = round(sqrt(2 * blocking * self.mtbf(life)))
        return min(LONGEST_US, max(SHORTEST_US, best))

    @cached_property
    def _rates(self) -> Mapping[Kind, float]:
        """Samples per µs that runs and waits for nothing, of attempts without a straggler."""
        seen: defaultdict[Kind, list[float]] = defaultdict(list)
        for case in self.cases:
            for attempt in case.life.attempts:
                rate = _rate(attempt)
                if rate is not None and late_host(attempt) is None:
                    seen[kind_of(case.life)].append(rate)
        return {kind: median(rates) for kind, rates in seen.items()}

    def straggler(self, life: Life, attempt: Attempt) -> tuple[str, float] | None:
        """The host that keeps an attempt waiting, and how many times as fast its loop is without it; None: no host."""
        host = late_host(attempt)
        if host is None:
            return None
        rate, usual = _rate(attempt), self._rates.get(kind_of(life))
        return host, max(1.0, usual / rate) if rate and usual else 1.0


def late_host(attempt: Attempt) -> str | None:
    """Return the host that was last in most of the phases in which one rank kept the others waiting."""
    late: defaultdict[str, int] = defaultdict(int)
    for node in attempt.startup.nodes:
        if is_late(node) and node.rank in attempt.hosts:
            late[attempt.hosts[node.rank]] += 1
    most = max(late, key=lambda host: (late[host], host), default=None)
    return most if most is not None and late[most] > 1 and 2 * late[most] > sum(late.values()) else None


def _rate(attempt: Attempt) -> float | None:
    loop = attempt.loop
    if loop is None or loop.free < _HOUR // 12:
        return None
    ran = loop.free - loop.reports[-1].waited
    return loop.reports[-1].position / ran if ran > 0 else None
