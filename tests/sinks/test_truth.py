"""One truth for each row: whatever is retried, corrected, run again or taken over, the views say what is so."""

from random import Random
from typing import Any

import pytest

from ettwatch_clickhouse import Retry, Store, Writer, rebuild
from ettwatch_core import JobState, Rules, Settled, Verdict, apply, dump, load, settle, snapshot
from ettwatch_schemas import Event, encode_event
from support.clickhouse import StoppedClock, Truth, read_truth, should_be
from support.jobs import BASE, random_job

HOUR = 3_600_000_000
RULES = Rules(lateness=HOUR // 2)
# The random jobs take an hour or more; stretched they go over several.
STRETCH = 4


class Life:
    """A process that follows one job: it folds, publishes, crashes, and starts again from what it had saved."""

    def __init__(self, store: Store, rng: Random, events: list[Event], clock: StoppedClock) -> None:
        self.store = store
        self.rng = rng
        self.events = events
        self.clock = clock
        self.job = events[0].job
        self.now = 0
        self.late = 0
        self.saved: tuple[int, bytes | None, list[Settled]] = (0, None, [])
        self.start()

    def start(self) -> None:
        self.at, state, finals = self.saved
        self.state = JobState(self.job) if state is None else load(state)
        self.finals = list(finals)
        self.waiting: list[Settled] = []
        self.clock.now += self.rng.choice((0.0, -0.5, 2.0))  # clocks of machines differ
        self.writer = Writer(
            self.store, clock=self.clock, retry=Retry(patience_s=0), known_rows=self.rng.choice((1, 10_000))
        )

    def live(self) -> Truth:
        while self.at < len(self.events):
            self.take(self.events[self.at])
            self.at += 1
            dice = self.rng.random()
            if dice < 0.05:
                self.start()
            elif dice < 0.15:
                self.publish()
            elif dice < 0.25:
                self.flush()
        self.publish(last=True)
        self.writer.flush()
        return self.truth()

    def take(self, event: Event) -> None:
        verdict = apply(self.state, event, RULES)
        self.late += verdict is Verdict.LATE
        if verdict in (Verdict.ACCEPTED, Verdict.CONFLICT):
            self.writer.event(event, encode_event(event))
        if self.rng.random() < 0.2:
            settled = settle(self.state, RULES, every=HOUR // 4)
            if settled is not None:
                self.waiting.append(settled)
                self.finals.append(settled)

    def publish(self, *, last: bool = False) -> None:
        ahead = self.rng.choice((None, 0, 1_000, 10**9, 2 * HOUR))
        if not last and ahead is not None:
            self.now = max(self.now, self.state.newest + ahead)
        snap = snapshot(self.state, RULES, None if ahead is None and not last else self.now)
        for settled in self.waiting:
            self.writer.settled(settled, snap.summary.version)
        self.waiting = []
        self.writer.snapshot(snap)

    def flush(self) -> None:
        self.publish()
        self.writer.flush()
        if self.rng.random() < 0.7:
            self.saved = (self.at, dump(self.state), list(self.finals))

    def truth(self) -> Truth:
        return should_be(snapshot(self.state, RULES, self.now), self.finals)


def stretched(events: list[Event]) -> list[Event]:
    """The events over a longer time, nearly in order."""
    changes: list[Event] = []
    for event in events:
        more: dict[str, Any] = {"ts": BASE + (event.ts - BASE) * STRETCH}
        eligible = getattr(event, "eligible_ts", None)
        if eligible is not None:
            more["eligible_ts"] = BASE + (eligible - BASE) * STRETCH
        changes.append(event.model_copy(update=more))
    return sorted(changes, key=lambda event: event.ts)


def shuffled(rng: Random, events: list[Event]) -> list[Event]:
    """A different order in which nothing is too late, with some events twice."""
    late = RULES.lateness or 0
    out = sorted(events, key=lambda event: event.ts + rng.randrange(late // 2))
    return sorted([*out, *rng.sample(out, len(out) // 10)], key=out.index)


@pytest.mark.parametrize("seed", range(3))
def test_a_life_with_crashes_then_a_run_of_everything_then_a_rebuild(embedded: Store, seed: int) -> None:
    rng = Random(seed)
    clock = StoppedClock()
    events = stretched(random_job(rng, f"job-{seed}"))
    life = Life(embedded, rng, shuffled(rng, events), clock)
    right = life.live()
    stored = read_truth(embedded, life.job)
    assert stored == right

    again = Life(embedded, rng, shuffled(rng, events), clock)
    again.now = life.now
    right = again.live()
    if life.late == again.late == 0:
        assert right == read_truth(embedded, life.job)

    report = rebuild(embedded, RULES, clock=clock)
    assert (report.jobs, report.kept) == (1, 0)
    if life.late == again.late == report.rejected == 0:
        anew = read_truth(embedded, life.job)
        assert anew is not None
        assert anew._replace(summary=right.summary) == right
        assert anew.summary.model_copy(update={"version": right.summary.version}) == right.summary
