"""Settling changes nothing but the size of the state."""

import json
import zlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_core import (
    CELL,
    JobState,
    Rules,
    Settled,
    StateError,
    Verdict,
    apply,
    cells,
    dump,
    load,
    settle,
    snapshot,
    summarize,
)
from ettwatch_schemas import (
    AttemptSummary,
    CheckpointDurable,
    Event,
    PhaseEnded,
    PhaseSpan,
    PhaseStarted,
    Segment,
    decode_event,
)
from support.jobs import jobs, mangle
from support.long import a_long_job

SECOND = 1_000_000
NO_LIMIT = Rules(lateness=None)


def within_reach(events: list[Event], lateness: int) -> list[Event]:
    """Leave out what settling does not promise: references back to spans that are long over.

    Those are a ``parent`` that ended before its child began, a span that ends more than the lateness before it starts,
    and a ``phase_ended`` from a process that outlived its attempt.
    """
    starts = {(e.attempt, e.rank, e.span): e.ts for e in events if isinstance(e, PhaseStarted)}
    next_start: dict[int, int] = {}
    for e in events:
        if e.attempt is not None and not isinstance(e, PhaseEnded):
            for number in range(e.attempt):
                next_start[number] = min(next_start.get(number, e.ts), e.ts)
    out: list[Event] = []
    for e in events:
        if isinstance(e, PhaseStarted):
            out.append(e.model_copy(update={"parent": None}))
        elif isinstance(e, PhaseEnded):
            begun = starts.get((e.attempt, e.rank, e.span))
            if begun is not None and begun - e.ts <= lateness and e.ts <= next_start.get(e.attempt, e.ts):
                out.append(e)
        else:
            out.append(e)
    return out


class Streamed:
    """A job fed event by event, settled after each, with what was handed out."""

    def __init__(self, lateness: int, every: int) -> None:
        self.rules = Rules(lateness=lateness)
        self.every = every
        self.state = JobState("job")
        self.segments: list[Segment] = []
        self.attempts: dict[int, AttemptSummary] = {}
        self.spans: list[PhaseSpan] = []
        self.times = 0

    def feed(self, event: Event) -> Verdict:
        verdict = apply(self.state, event, self.rules)
        settled = settle(self.state, self.rules, every=self.every)
        if settled is not None:
            self.take(settled)
        return verdict

    def take(self, settled: Settled) -> None:
        self.times += 1
        self.segments += settled.segments
        self.spans += settled.spans
        for attempt in settled.attempts:
            assert attempt.attempt not in self.attempts, "an attempt is handed out once"
            self.attempts[attempt.attempt] = attempt


def joined(segments: list[Segment]) -> list[Segment]:
    out: list[Segment] = []
    for s in segments:
        if (
            out
            and out[-1].end == s.start
            and (out[-1].attempt, out[-1].stage, out[-1].gpus)
            == (
                s.attempt,
                s.stage,
                s.gpus,
            )
        ):
            out[-1] = out[-1]._replace(end=s.end)
        else:
            out.append(s)
    return out


def plain(span: PhaseSpan) -> PhaseSpan:
    """A span whose end is told after its attempt was settled stays marked as open."""
    return span._replace(open=False, behind=0)


def no_zombies(attempt: AttemptSummary) -> AttemptSummary:
    """What a settled attempt still says flags the job, not the attempt."""
    return attempt.model_copy(update={"flags": [f for f in attempt.flags if f != "zombie"]})


@given(
    jobs(),
    st.integers(0, 2**32),
    st.sampled_from([5 * SECOND, 60 * SECOND, 400 * SECOND, 3600 * SECOND]),
    st.sampled_from([0, 100 * SECOND, CELL]),
    st.sampled_from([0, SECOND, 700 * SECOND, 8 * 3600 * SECOND]),
)
def test_settled_or_not_it_is_the_same_job(
    events: list[Event], seed: int, lateness: int, every: int, wait: int
) -> None:
    rng = Random(seed)
    told = mangle(rng, within_reach(events, lateness), lateness_us=lateness)
    stream, whole = Streamed(lateness, every), JobState("job")
    for event in told:
        verdict = stream.feed(event)
        if verdict is not Verdict.LATE:
            apply(whole, event, NO_LIMIT)
        if rng.random() < 0.05:
            stream.state = load(dump(stream.state))
    now = whole.newest + wait
    want, got = snapshot(whole, NO_LIMIT, now), snapshot(stream.state, stream.rules, now)
    assert got.summary.model_copy(update={"version": 0}) == want.summary.model_copy(update={"version": 0})
    assert joined([*stream.segments, *got.segments]) == want.segments
    attempts = {**stream.attempts, **{a.attempt: a for a in got.attempts}}
    assert [no_zombies(attempts[a.attempt]) for a in want.attempts] == [no_zombies(a) for a in want.attempts]
    assert sorted(map(plain, [*stream.spans, *got.spans])) == sorted(map(plain, want.spans))
    if got.segments and stream.segments:
        assert stream.segments[-1].end == got.segments[0].start
        assert got.segments[0].start == got.final_before
    assert len(cells(stream.segments).keys() & cells(got.segments).keys()) == 0


@pytest.mark.parametrize("broken", [False, True], ids=["sound", "with an open span"])
def test_the_state_of_a_long_job_is_bounded(broken: bool) -> None:
    events = a_long_job(4, Random(3), broken=broken)
    rules = Rules()
    state = JobState("job")
    sizes = []
    for i, event in enumerate(events):
        assert apply(state, event, rules) is Verdict.ACCEPTED
        settle(state, rules)
        if i > len(events) // 2 and i % 97 == 0:
            sizes.append(len(dump(state)))
    assert max(sizes) < 64 * 1024
    if not broken:
        whole = JobState("job")
        for event in events:
            apply(whole, event, NO_LIMIT)
        assert summarize(state, rules) == summarize(whole, NO_LIMIT)


def test_a_restart_of_a_long_job_discards_what_it_should() -> None:
    """The next attempt goes on from a durable checkpoint that was settled hours ago."""
    rng = Random(5)
    events = a_long_job(1, rng)
    durables = [e for e in events if isinstance(e, CheckpointDurable)]
    start = durables[-80].position
    ts = events[-1].ts
    told = {"v": 1, "job": "job"}
    more = [
        {"kind": "attempt_ended", "ts": ts + 60 * SECOND, "attempt": 0, "outcome": "failed", "source": "launcher"},
        {"kind": "attempt_started", "ts": ts + 90 * SECOND, "attempt": 1, "gpus": 64},
        {"kind": "training_started", "ts": ts + 120 * SECOND, "attempt": 1, "position": start, "step": 1},
    ]
    events += [decode_event(json.dumps({**told, "id": body["kind"], **body})) for body in more]
    rules, state, whole = Rules(), JobState("job"), JobState("job")
    for event in events:
        apply(state, event, rules)
        settle(state, rules)
        apply(whole, event, NO_LIMIT)
    assert state.carry is not None
    assert summarize(state, rules) == summarize(whole, NO_LIMIT)
    assert summarize(state, rules).unsaved_s > 3600


def test_an_event_later_than_the_lateness_is_refused_and_leaves_no_trace() -> None:
    events = a_long_job(0.5, Random(8))
    rules, state = Rules(), JobState("job")
    for event in events:
        apply(state, event, rules)
        settle(state, rules)
    before = dump(state)
    old = events[-1].model_copy(update={"id": "late", "ts": state.newest - 6 * 3600 * SECOND - 1})
    assert apply(state, old, rules) is Verdict.LATE
    assert dump(state) == before
    just = events[-1].model_copy(update={"id": "just in time", "ts": state.newest - 6 * 3600 * SECOND})
    assert apply(state, just, rules) is Verdict.ACCEPTED


def test_nothing_is_settled_without_a_lateness() -> None:
    state = JobState("job")
    for event in a_long_job(0.5, Random(8)):
        apply(state, event, NO_LIMIT)
        assert settle(state, NO_LIMIT) is None


@pytest.mark.parametrize("data", [b"", b"junk", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_bytes_that_are_no_state_are_refused(data: bytes) -> None:
    with pytest.raises(StateError, match="not a stored job state"):
        load(data)


def test_a_state_of_another_form_is_refused() -> None:
    body = json.loads(zlib.decompress(dump(JobState("job"))))
    body["format"] = 99
    with pytest.raises(StateError, match="format 99"):
        load(zlib.compress(json.dumps(body).encode()))
