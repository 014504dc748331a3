"""The laws: the timeline is a function of the set of events, and every microsecond is charged once."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ettwatch_core import CELL, JobState, Rules, Snapshot, Verdict, apply, cells, dump, load, snapshot, summarize
from ettwatch_schemas import COMPONENTS, EFFECTIVE, Event, JobSummary, component_of
from support.jobs import jobs

RULES = Rules(lateness=None)


def fold(events: Iterable[Event]) -> JobState:
    state = JobState("job")
    for event in events:
        apply(state, event, RULES)
    return state


def micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


def drawn(events: list[Event], wait: int = 0) -> Snapshot:
    state = fold(events)
    return snapshot(state, RULES, state.newest + wait)


waits = st.sampled_from([0, 1, 59_000_000, 700_000_000, 5 * 3600 * 1_000_000, 6 * 3600 * 1_000_000, 10**12])


@given(jobs(), st.integers(0, 2**32))
def test_order_and_duplicates_do_not_matter(events: list[Event], seed: int) -> None:
    again = events + Random(seed).sample(events, len(events) // 2)
    Random(seed).shuffle(again)
    assert drawn(again) == drawn(events)
    assert dump(fold(again)) == dump(fold(events))


@given(jobs(), st.integers(0, 2**32))
def test_batching_and_storing_in_between_do_not_matter(events: list[Event], seed: int) -> None:
    rng = Random(seed)
    state = JobState("job")
    for event in events:
        assert apply(state, event, RULES) is Verdict.ACCEPTED
        if rng.random() < 0.1:
            state = load(dump(state))
    assert snapshot(state, RULES) == drawn(events)
    assert all(apply(state, event, RULES) is Verdict.DUPLICATE for event in events)


@given(jobs(), waits)
def test_time_is_conserved(events: list[Event], wait: int) -> None:
    summary, _, segments, _, _ = drawn(events, wait)
    e2e = summary.t1 - summary.t0
    assert micros(summary.e2e_s) == e2e
    assert micros(summary.effective_s) + sum(map(micros, summary.components.values())) == e2e
    assert sum(map(micros, summary.stages.values())) == e2e
    assert tuple(summary.components) == COMPONENTS
    by_component: Counter[str] = Counter()
    for stage, seconds in summary.stages.items():
        by_component[component_of(stage)] += micros(seconds)
    assert by_component[EFFECTIVE] == micros(summary.effective_s)
    assert all(by_component[name] == micros(seconds) for name, seconds in summary.components.items())
    assert all(seconds > 0 for seconds in summary.stages.values())
    if e2e:
        assert segments[0].start == summary.t0
        assert segments[-1].end == summary.t1
        assert summary.ett_pct is not None
        assert 0 <= summary.ett_pct <= 100
    else:
        assert segments == []
        assert summary.ett_pct is None


@given(jobs(), waits)
def test_segments_are_disjoint_gapless_and_joined(events: list[Event], wait: int) -> None:
    segments = drawn(events, wait).segments
    assert all(segment.end > segment.start for segment in segments)
    for one, two in pairwise(segments):
        assert one.end == two.start
        assert (one.attempt, one.stage, one.gpus) != (two.attempt, two.stage, two.gpus)
    by_cell = cells(segments)
    assert all(cell <= s.start < s.end <= cell + CELL for cell, rows in by_cell.items() for s in rows)
    assert sum(s.end - s.start for rows in by_cell.values() for s in rows) == sum(s.end - s.start for s in segments)


@given(jobs(), waits)
def test_gpu_seconds_weigh_every_segment(events: list[Event], wait: int) -> None:
    summary, _, segments, _, _ = drawn(events, wait)
    total = sum((s.end - s.start) * s.gpus for s in segments)
    waited = sum((s.end - s.start) * s.gpus for s in segments if component_of(s.stage) == "scheduling")
    effective = sum((s.end - s.start) * s.gpus for s in segments if s.stage == EFFECTIVE)
    assert summary.gpu_e2e_s == total / 1e6
    assert summary.gpu_held_s == (total - waited) / 1e6
    assert summary.gpu_effective_s == effective / 1e6


@given(jobs(), waits)
def test_the_life_of_the_job_adds_up(events: list[Event], wait: int) -> None:
    """E2E = scheduling before attempt 0 + its start-up + recovery + time in loops + time after loops."""
    summary, attempts, _, _, _ = drawn(events, wait)
    total = micros(summary.recovery_s)
    if not attempts:
        assert micros(summary.components["scheduling"]) == summary.t1 - summary.t0
        return
    first = attempts[0]
    total += first.start - summary.t0
    total += (first.end if first.first_batch is None else first.first_batch) - first.start
    for i, attempt in enumerate(attempts):
        cut_short = attempt.outcome in ("failed", "preempted")
        in_loop = False
        if attempt.first_batch is not None:
            assert attempt.last_advance is not None
            assert attempt.loop_end is not None
            said_so = any(
                e.kind == "training_ended" and e.attempt == attempt.attempt and e.ts == attempt.end for e in events
            )
            in_loop = cut_short and attempt.loop_end == attempt.end and not said_so
            total += (attempt.last_advance if in_loop else attempt.end) - attempt.first_batch
        if i == len(attempts) - 1 and not cut_short:
            total += summary.t1 - attempt.end
    assert total == summary.t1 - summary.t0


@given(jobs(), st.integers(0, 2**32))
def test_one_id_with_two_contents_has_one_answer(events: list[Event], seed: int) -> None:
    rng = Random(seed)
    victim = rng.choice(events)
    other = victim.model_copy(update={"ts": victim.ts + rng.randrange(1, 10_000_000)})
    one = drawn([*events, other])
    assert one == drawn([other, *events])
    assert "id_conflict" in one.summary.flags
    kept = [drawn([*(e for e in events if e is not victim), chosen]) for chosen in (victim, other)]
    bare = [without_conflict(k.summary) for k in kept]
    assert without_conflict(one.summary) in bare or one.summary.t1 == max(k.summary.t1 for k in kept)


def without_conflict(summary: JobSummary) -> JobSummary:
    return summary.model_copy(update={"version": 0, "flags": [f for f in summary.flags if f != "id_conflict"]})


@given(jobs(), waits)
def test_the_short_way_gives_the_same_summary(events: list[Event], wait: int) -> None:
    state = fold(events)
    assert summarize(state, RULES, state.newest + wait) == snapshot(state, RULES, state.newest + wait).summary


@given(jobs())
def test_drawing_does_not_change_the_state(events: list[Event]) -> None:
    state = fold(events)
    before = dump(state)
    snapshot(state, RULES)
    assert dump(state) == before


@given(jobs())
def test_versions_rise_with_every_event(events: list[Event]) -> None:
    state = JobState("job")
    versions = []
    for event in events:
        apply(state, event, RULES)
        versions.append(summarize(state, RULES, state.newest).version)
    assert all(b > a for a, b in pairwise(versions))
