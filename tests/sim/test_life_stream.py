"""The stream of events: in time order, the same for a seed, lazy, and as it travels."""

import tracemalloc
from collections import Counter, defaultdict
from itertools import islice, pairwise

import pytest

from ettwatch_schemas import KINDS, Event, PhaseEnded, PhaseStarted, decode_event, decode_message, encode_event
from ettwatch_sim.life import Clock, Cluster, Model, Rate, Scenario, Team, Travel, batches, in_order, preset, simulate
from support.life import fold, small

TRAVEL = Travel(jitter_s=2, late=0.03, late_s=1_800, doubled=0.05)


def some(seed: int = 3, **fields: object) -> list[Event]:
    return list(simulate(seed, small(0.6, **fields)))


SOUND = some()


def test_a_seed_says_everything() -> None:
    assert some() == SOUND
    assert some(4) != SOUND


def test_in_time_order_of_every_kind_and_source() -> None:
    assert all(a.ts <= b.ts for a, b in pairwise(SOUND))
    assert {event.kind for event in SOUND} == set(KINDS)
    assert {event.source for event in SOUND} == {"trainer", "launcher", "scheduler"}
    assert len({event.rank for event in SOUND}) > 10
    assert sum(a.job != b.job for a, b in pairwise(SOUND)) > len(SOUND) / 2


def test_every_event_is_told_once_and_goes_over_the_wire() -> None:
    assert len({(event.job, event.id) for event in SOUND}) == len(SOUND)
    for event in SOUND[::7]:
        assert decode_event(encode_event(event)) == event


def test_spans_have_parents_and_ends_and_are_told_by_several_ranks() -> None:
    begun: dict[tuple[str, int, int, str], PhaseStarted] = {}
    ranks: defaultdict[tuple[str, int, str], set[int]] = defaultdict(set)
    children = 0
    for event in SOUND:
        if isinstance(event, PhaseStarted):
            key = (event.job, event.attempt, event.rank, event.span)
            assert key not in begun
            begun[key] = event
            ranks[event.job, event.attempt, event.span].add(event.rank)
            if event.parent is not None:
                children += 1
    for event in SOUND:
        if isinstance(event, PhaseEnded):
            assert begun[event.job, event.attempt, event.rank, event.span].ts <= event.ts
    for (job, attempt, rank, _), event in begun.items():
        if event.parent is not None:
            assert (job, attempt, rank, event.parent) in begun
    assert children > 100
    assert max(map(len, ranks.values())) == 4


def test_the_pipeline_of_data_and_uploads_run_beside() -> None:
    snapshots = fold(SOUND).values()
    hidden = {phase for each in snapshots for phase in each.summary.hidden_s}
    assert "trainer_init.process_group_init" in hidden or "trainer_init.checkpoint_load" in hidden
    assert any(span.background for each in snapshots for span in each.spans)
    assert any(span.behind > 20_000_000 and span.ranks > 1 for each in snapshots for span in each.spans), "no straggler"


def test_travel_doubles_and_delays_and_changes_no_figure() -> None:
    arrived = some(travel=TRAVEL)
    assert {encode_event(e) for e in arrived} == {encode_event(e) for e in SOUND}
    assert 1.03 < len(arrived) / len(SOUND) < 1.07
    newest, behind = 0, []
    for event in arrived:
        newest = max(newest, event.ts)
        behind.append(newest - event.ts)
    assert 900e6 < max(behind) <= 1_802e6
    sound, late = fold(SOUND), fold(arrived)
    assert {j: s.summary.stages for j, s in sound.items()} == {j: s.summary.stages for j, s in late.items()}


def test_clocks_are_skewed_by_host() -> None:
    skewed = {(e.job, e.id): e for e in some(travel=Travel(skewed=0.5, skew_s=3))}
    shifts: defaultdict[str | None, set[int]] = defaultdict(set)
    for event in SOUND:
        shifts[event.host].add(skewed[event.job, event.id].ts - event.ts)
    assert all(len(each) == 1 for each in shifts.values())
    by = Counter(each.pop() for each in shifts.values())
    assert 0.3 < by[0] / sum(by.values()) < 0.7
    assert 1e6 < max(map(abs, by)) <= 3e6


def test_it_stops_at_the_end_where_jobs_are_not_waited_for() -> None:
    cut = list(in_order(3, small(0.6, drain=False)))
    end = small(0.6).end
    assert cut == [event for event in SOUND if event.ts < end]
    assert len(cut) < len(SOUND)


def test_a_fleet_without_end_begins_at_once() -> None:
    events = list(islice(simulate(1, preset("fleet").but(days=3_000.0)), 2_000))
    assert events[0].kind == "job_submitted"
    assert events[0].ts - preset("fleet").begin < 6 * 3_600_000_000


def test_memory_does_not_grow_with_the_days() -> None:
    short = Model(name="short", work_h=0.2, work_spread=0.1, gpu_mtbf_h=1e9, job_mtbf_h=1e9, bad_starts=0)
    scenario = Scenario(
        clusters=(Cluster(name="c", gpus=256, storms_per_week=0),),
        models=(short,),
        teams=(Team(name="t", models=("short",), jobs_per_day=40),),
        report_every_s=600,
        ranks=1,
    )

    def peak(days: float) -> int:
        tracemalloc.start()
        try:
            for _ in in_order(1, scenario.but(days=days)):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(5.0) < 1.4 * peak(1.5)


def test_messages_hold_what_a_job_has_in_a_second() -> None:
    messages = list(batches(some(travel=TRAVEL)))
    told = 0
    for message in messages:
        found, wrong = decode_message(message.value)
        assert not wrong
        assert {event.job for event in found} == {message.job}
        assert len(found) == message.events
        told += len(found)
    assert told == len(some(travel=TRAVEL))
    assert any(message.events > 3 for message in messages)
    assert all(a.ts <= b.ts for a, b in pairwise(messages))
    assert len(list(batches(SOUND, alone=True))) == len(SOUND)


@pytest.mark.parametrize(
    ("text", "waits"),
    [("max", [0, 0, 0]), ("2x", [0, 5, 10]), ("0.5x", [0, 20, 40]), ("100/s", [0, 0.1, 0.2])],
)
def test_the_rate(text: str, waits: list[float]) -> None:
    clock = Clock(Rate.parse(text), began=1_000)
    found = []
    for second in (0, 10, 20):
        found.append(clock.wait(second * 1_000_000, now=1_000))
        clock.sent(10)
    assert found == pytest.approx(waits)


@pytest.mark.parametrize("text", ["", "fast", "0x", "-1x", "5", "5/m", "nan/s", "1e999/s"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ValueError, match="is no rate; write max, 60x"):
        Rate.parse(text)
