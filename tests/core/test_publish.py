"""What is published adds up to what is so, whoever publishes it and however often it comes."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ettwatch_core import (
    JobState,
    Publication,
    Published,
    Rules,
    Settled,
    Snapshot,
    apply,
    cells,
    dump,
    load,
    publish,
    settle,
    snapshot,
)
from ettwatch_schemas import Event, PhaseKey, PhaseSpan, decode_event, encode_update
from support.clickhouse import should_be
from support.jobs import jobs, mangle
from support.long import a_long_job
from support.readers import Message, Reader, messages

SECOND = 1_000_000
HOUR = 3600 * SECOND


class Life:
    """A job that is folded and published, by one worker after the other.

    A worker publishes, then stores the state; it may die in between. Whoever takes over goes on from the stored state
    and gets the events after that again, in the same order.
    """

    def __init__(self, rng: Random, events: list[Event], rules: Rules) -> None:
        self.rng = rng
        self.events = events
        self.rules = rules
        # When a job is settled depends on its events alone.
        self.settles = {at for at in range(len(events)) if rng.random() < 0.3}
        self.every = rng.choice((0, 100 * SECOND, HOUR))
        self.reader = Reader()
        self.log: list[Message] = []
        self.greatest = 0
        self.reached = 0
        self.saved: tuple[int, bytes | None, list[Settled]] = (0, None, [])
        self.checked = 0
        self.now = 0
        self.start()

    def start(self) -> None:
        self.at, state, finals = self.saved
        self.state = JobState(self.events[0].job) if state is None else load(state)
        self.finals = list(finals)
        self.published = Published()
        self.behind = self.at < self.reached
        self.now += self.rng.choice((0, 2 * SECOND))  # a clock that is behind would have to catch up first

    def live(self) -> None:
        while self.at < len(self.events):
            apply(self.state, self.events[self.at], self.rules)
            if self.at in self.settles:
                settled = settle(self.state, self.rules, every=self.every)
                if settled is not None:
                    self.finals.append(settled)
                    self.published.settled(settled)
            self.at += 1
            self.reached = max(self.reached, self.at)
            if self.behind and self.at == self.reached:
                self.behind = False
                self.published.start_over()
            self.something()
        self.now += 3 * SECOND
        self.publish()
        assert self.checked, "at least the end was compared"

    def something(self) -> None:
        dice = self.rng.random()
        if dice < 0.2:
            self.publish()
        if dice < 0.1:
            self.saved = (self.at, dump(self.state), list(self.finals))
        elif dice > 0.97:
            self.start()
        elif dice > 0.94:
            self.reader.take(self.log[-self.rng.randint(1, 30) :])

    def publish(self) -> Publication:
        ahead = self.rng.choice((0, 1, 10, 1_000, 9_000))
        self.now = max(self.now, self.state.newest + ahead * SECOND)
        snap = snapshot(self.state, self.rules, self.now // SECOND * SECOND)
        publication = self.published.publication(snap)
        sent = messages(publication)
        self.log += sent
        self.reader.take(sent)
        if not self.behind and snap.summary.version >= self.greatest:
            self.checked += 1
            assert self.reader.truth() == should_be(snap, self.finals)
        self.greatest = max(self.greatest, snap.summary.version)
        return publication


@given(jobs(), st.integers(0, 2**32), st.sampled_from([5 * SECOND, 60 * SECOND, 400 * SECOND, HOUR // 2]))
def test_a_reader_knows_the_job(events: list[Event], seed: int, lateness: int) -> None:
    rng = Random(seed)
    Life(rng, mangle(rng, events, lateness_us=lateness), Rules(lateness=lateness)).live()


@given(jobs(size="medium"), st.integers(0, 2**32))
@settings(max_examples=10)
def test_a_reader_knows_a_longer_job(events: list[Event], seed: int) -> None:
    rng = Random(seed)
    Life(rng, mangle(rng, events, lateness_us=5 * SECOND), Rules(lateness=5 * SECOND)).live()


def told(*bodies: dict[str, object]) -> list[Event]:
    """Events of one job from what is particular of each; times in seconds."""
    out = []
    for place, body in enumerate(bodies):
        at = body["at"]
        assert isinstance(at, int)
        full = {"v": 1, "id": str(place), "job": "job", **body, "ts": T0 + at * SECOND}
        out.append(decode_event(json.dumps(full)))
    return out


T0 = 1_790_002_800_000_000  # a whole hour
START = {"at": 0, "kind": "attempt_started", "attempt": 0, "gpus": 8}


class Worker:
    """A job that is folded and published by one worker."""

    def __init__(self) -> None:
        self.state = JobState("job")
        self.rules = Rules()
        self.published = Published()

    def look(self, events: list[Event], after: int = 0) -> Publication:
        for event in events:
            apply(self.state, event, self.rules)
        return self.published.publication(snapshot(self.state, self.rules, T0 + after * SECOND))


def test_nothing_is_sent_twice() -> None:
    worker = Worker()
    first = worker.look(told(START), 10)
    assert first.summary is not None
    assert [(u.whole, len(u.open)) for u in first.attempts] == [(True, 1)]
    assert [(u.whole, u.open, u.final, u.gone) for u in first.phases] == [(True, [], [], [])]
    assert [(u.whole, u.first, u.last, len(u.hours)) for u in first.segments] == [(True, T0, T0, 1)]
    assert worker.look([], 10) == (None, [], [], [])
    later = worker.look([], 11)
    assert later.summary is not None
    assert [(u.whole, [a.end for a in u.open]) for u in later.attempts] == [(False, [T0 + 11 * SECOND])]
    assert later.phases == []
    assert [(u.whole, len(u.hours)) for u in later.segments] == [(False, 1)]


def test_a_job_without_time_is_whole_without_hours() -> None:
    (update,) = Worker().look(told(START)).segments
    assert (update.whole, update.first, update.last, update.hours) == (True, None, None, [])


def test_after_starting_over_everything_is_whole_again() -> None:
    worker = Worker()
    worker.look(told(START), 10)
    worker.published.start_over()
    again = worker.look([], 10)
    assert again.summary is not None
    assert [again.attempts[0].whole, again.phases[0].whole, again.segments[0].whole] == [True, True, True]
    assert again == Worker().look(told(START), 10)


def test_a_phase_that_turns_out_to_have_begun_earlier_takes_the_place_of_another() -> None:
    worker = Worker()
    phase = {"kind": "phase_started", "attempt": 0, "phase": "trainer_init", "span": "a"}
    (before,) = worker.look(told(START, {**phase, "at": 20}), 30).phases
    (after,) = worker.look(told(START, {**phase, "at": 20}, {**phase, "at": 15, "rank": 1}), 30).phases
    assert [span.start for span in before.open] == [T0 + 20 * SECOND]
    assert [span.start for span in after.open] == [T0 + 15 * SECOND]
    assert after.gone == [PhaseKey(0, "trainer_init", False, 0, T0 + 20 * SECOND)]
    assert not after.whole


def test_hours_that_a_job_did_not_reach_after_all_are_emptied() -> None:
    worker = Worker()
    (before,) = worker.look(told(START), 3 * 3600 + 1).segments
    assert (before.first, before.last, len(before.hours)) == (T0, T0 + 3 * HOUR, 4)
    ended = {"at": 3600, "kind": "job_ended", "outcome": "failed"}
    (after,) = worker.look(told(START, ended), 3 * 3600 + 1).segments
    assert (after.first, after.last) == (T0, T0)
    assert [hour.cell for hour in after.hours if not hour.segments] == [T0 + HOUR, T0 + 2 * HOUR, T0 + 3 * HOUR]
    assert worker.look([], 3 * 3600 + 2)[1:] == ([], [], [])


def test_a_job_that_began_later_after_all_leaves_its_first_hours() -> None:
    worker = Worker()
    submitted = {"kind": "job_submitted", "eligible_ts": T0 + 2 * 3600 * SECOND, "at": 0}
    start = {**START, "at": 2 * 3600 + 1}
    (before,) = worker.look(told({"kind": "heartbeat", "attempt": 0, "at": 1}), 3 * 3600).segments
    assert (before.first, before.last) == (T0, T0 + 2 * HOUR)
    moved = Worker()
    moved.published = worker.published
    (after,) = moved.look(told(submitted, start), 3 * 3600).segments
    assert (after.first, after.last) == (T0 + 2 * HOUR, T0 + 2 * HOUR)
    assert [hour.cell for hour in after.hours if not hour.segments] == [T0, T0 + HOUR]


def settled_job() -> tuple[JobState, Settled]:
    """A job of which something became final just now."""
    rules, state = Rules(lateness=HOUR), JobState("job")
    for event in a_long_job(0.25, Random(3), every_s=60):
        apply(state, event, rules)
        settled = settle(state, rules)
        if settled is not None and settled.segments and settled.spans:
            return state, settled
    raise AssertionError("nothing was settled")


def test_what_was_settled_before_the_first_look_is_final_in_it() -> None:
    state, settled = settled_job()
    published = Published()
    published.settled(settled)
    published.start_over()
    publication = published.publication(snapshot(state, Rules(lateness=HOUR)))
    ((phases), (segments)) = publication.phases, publication.segments
    assert [(u.whole, u.final) for u in phases] == [(True, settled.spans)]
    hours = {hour.cell: hour.segments for update in segments for hour in update.hours}
    assert hours.items() >= cells(settled.segments).items()
    assert published.publication(snapshot(state, Rules(lateness=HOUR))) == (None, [], [], [])


def test_what_became_final_is_not_gone() -> None:
    state, settled = settled_job()
    published = Published()
    before = snapshot(state, Rules(lateness=HOUR))
    published.publication(before._replace(spans=[*settled.spans, *before.spans]))
    published.settled(settled)
    (update,) = published.publication(before).phases
    assert (update.open, update.final, update.gone) == ([], settled.spans, [])


def long_snapshot() -> Snapshot:
    state = JobState("job")
    for event in a_long_job(1, Random(5)):
        apply(state, event, Rules(lateness=None))
    snap = snapshot(state, Rules(lateness=None))
    numbers = range(20)
    return snap._replace(attempts=[snap.attempts[0].model_copy(update={"attempt": number}) for number in numbers])


def test_what_is_too_large_is_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    snap = long_snapshot()
    one = Published().publication(snap)
    assert [len(updates) for updates in one[1:]] == [1, 1, 1]
    most = 8_000
    monkeypatch.setattr(publish, "MOST_BYTES", most)
    published = Published()
    parts = published.publication(snap)
    assert {update.whole for update in parts.attempts} == {update.whole for update in parts.phases} == {False}
    assert min(len(updates) for updates in parts[1:]) > 1
    assert [row for update in parts.attempts for row in update.open] == one.attempts[0].open
    assert [row for update in parts.phases for row in update.open] == one.phases[0].open
    assert [hour for update in parts.segments for hour in update.hours] == one.segments[0].hours
    assert {(u.whole, u.first, u.last) for u in parts.segments} == {(True, one.segments[0].first, one.segments[0].last)}
    assert max(len(encode_update(update)) for update in parts.attempts) < most + 200
    assert max(len(encode_update(update)) for update in parts.phases) < most + 200
    for segments in parts.segments:
        assert len(segments.hours) == 1 or len(encode_update(segments)) < most + 200
    gone = published.publication(snap._replace(attempts=[], spans=[]))
    assert [key for update in gone.phases for key in update.gone] == [PhaseKey.of(span) for span in snap.spans]
    assert len(gone.phases) > 1


def test_what_is_remembered_is_small() -> None:
    """A job that reports every 15 s for a day, and saves every ten minutes; 6 h of it are not final."""
    rules, state, published = Rules(), JobState("job"), Published()
    for event in a_long_job(1, Random(5)):
        apply(state, event, rules)
        settled = settle(state, rules)
        if settled is not None:
            published.settled(settled)
    snap = snapshot(state, rules)
    published.publication(snap)
    assert len(snap.spans) > 30
    assert published.size < 3_000


def test_of_two_phases_with_one_key_the_longer_counts() -> None:
    snap = long_snapshot()
    short = PhaseSpan("job", 0, "trainer_init", T0, T0 + 5, 1, False, False, 5, 0, 0, 0, False)
    long = short._replace(end=T0 + 9)
    (update,) = Published().publication(snap._replace(spans=[short, long])).phases
    assert update.open == [long]
