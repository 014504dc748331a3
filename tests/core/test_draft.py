"""A snapshot says the same whether or not there is a draft to go on from."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_core import JobState, Rules, Snapshot, apply, draft, dump, load, settle, snapshot
from ettwatch_core.draft import Draft
from ettwatch_schemas import Event, Segment
from support.jobs import jobs, mangle
from support.long import a_long_job

SECOND = 1_000_000


@pytest.fixture(autouse=True, scope="module")
def eager() -> object:
    """Cut at every snapshot."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draft, "WORTH", 1)
        yield


def drawn_anew(state: JobState, rules: Rules, now: int | None) -> Snapshot:
    return snapshot(load(dump(state)), rules, now)


def until(segments: list[Segment], ts: int) -> list[Segment]:
    return [s._replace(end=min(s.end, ts)) for s in segments if s.start < ts]


@given(
    jobs(),
    st.integers(0, 2**32),
    st.sampled_from([None, 5 * SECOND, 400 * SECOND, 7200 * SECOND]),
    st.sampled_from([0, SECOND, 700 * SECOND, 8 * 3600 * SECOND]),
)
def test_a_draft_changes_nothing(events: list[Event], seed: int, lateness: int | None, wait: int) -> None:
    rng = Random(seed)
    rules = Rules(lateness=lateness)
    state = JobState("job")
    for event in mangle(rng, events, lateness_us=rng.choice([0, 10, 400]) * SECOND):
        apply(state, event, rules)
        if rng.random() < 0.1:
            settle(state, rules, every=0)
        if rng.random() < 0.3 and state.newest:
            now = state.newest + wait
            assert snapshot(state, rules, now, keep=rng.random() < 0.7) == drawn_anew(state, rules, now)
    assert snapshot(state, rules) == drawn_anew(state, rules, None)


@given(jobs(), st.integers(0, 2**32))
def test_what_is_called_steady_stays(events: list[Event], seed: int) -> None:
    rng = Random(seed)
    rules = Rules(lateness=400 * SECOND)
    state = JobState("job")
    before: dict[int, list[tuple[int, list[Segment]]]] = {}
    for event in mangle(rng, events, lateness_us=rng.choice([0, 10, 400]) * SECOND):
        apply(state, event, rules)
        if rng.random() < 0.1:
            settle(state, rules, every=0)
        if rng.random() < 0.5 and state.newest:
            snap = snapshot(state, rules, state.newest + rng.choice([0, 700]) * SECOND, keep=rng.random() < 0.7)
            number, ts = snap.steady
            if number:
                for then, segments in before.setdefault(number, []):
                    assert until(snap.segments, then) == segments
                before[number].append((ts, until(snap.segments, ts)))


def test_a_running_job_is_not_drawn_from_its_start() -> None:
    rules, state = Rules(), JobState("job")
    kept = []
    for event in a_long_job(0.2, Random(1)):
        apply(state, event, rules)
        snapshot(state, rules)
        kept.append(len(state.draft.state.records) if isinstance(state.draft, Draft) else None)
    assert len(state.records) > 1000
    late = kept[len(kept) // 2 :]
    assert sum(1 for n in late if n is not None and n < 20) > 0.9 * len(late)
