"""The writer against a ClickHouse that fails: delay, but no loss and no doubles."""

import json
from collections.abc import Callable, Sequence
from random import Random

import pytest

from ettwatch_clickhouse import Retry, Store, StoreError, StoreUnavailable, Writer
from ettwatch_schemas import decode_event, encode_event
from support.clickhouse import FaultyStore, StoppedClock, after, before, count, read_truth, should_be
from support.story import Story

Fault = Callable[[Callable[[], object]], object]

CALLS = 9
"""What the writer asks of the store to bring one new job in: four look-ups and five inserts."""
AWAY = StoreUnavailable("away")
FULL = StoreError("cannot insert into x: no space left on device; the disk is full", 243)


def story(job: str = "j") -> Story:
    return Story(job).submitted().started(60).phase(70, 90, "trainer_init.device_init").trains(100).progress(200, 5)


def writer_on(store: Store, clock: StoppedClock, **changes: float) -> Writer:
    policy = Retry(**{"first_s": 1.0, "most_s": 8.0, "patience_s": 1000.0, **changes})
    return Writer(store, clock=clock, sleep=clock.sleep, retry=policy, chance=lambda: 1.0)


def tell(writer: Writer, told: Story) -> None:
    for event in told.events:
        writer.event(event, encode_event(event))
    writer.snapshot(told.at())


def all_there(store: Store, *stories: Story) -> None:
    for told in stories:
        assert read_truth(store, told.job) == should_be(told.at())
    rows = store.query("SELECT id FROM events ORDER BY id").rows
    assert [row[0] for row in rows] == sorted(e.id for told in stories for e in told.events)


@pytest.mark.parametrize("fault", [before(AWAY), after(AWAY)], ids=["before", "after"])
def test_one_failed_call_costs_one_pause(embedded: Store, fault: Fault) -> None:
    stories = [story(f"job-{call}") for call in range(CALLS)]
    for call, told in enumerate(stories):
        faulty = FaultyStore(embedded)
        clock = StoppedClock()
        writer = writer_on(faulty, clock)
        tell(writer, told)
        faulty.plan = [None] * call + [fault]
        writer.flush()
        assert not faulty.plan
        assert clock.slept == [1.0]
        assert writer.pending == 0
    all_there(embedded, *stories)


def test_a_long_absence_is_waited_for_with_growing_pauses(embedded: Store) -> None:
    faulty = FaultyStore(embedded)
    clock = StoppedClock()
    writer = writer_on(faulty, clock)
    tell(writer, story())
    faulty.plan = [None] * 4 + [before(AWAY)] * 6
    writer.flush()
    assert clock.slept == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    all_there(embedded, story())


def test_pauses_are_never_quite_the_same() -> None:
    clock = StoppedClock()
    faulty = FaultyStore(_Nowhere())
    writer = Writer(faulty, clock=clock, sleep=clock.sleep, retry=Retry(1.0, 1.0, 20.0), chance=Random(1).random)
    tell(writer, story())
    with pytest.raises(StoreUnavailable):
        writer.flush()
    assert len(set(clock.slept)) == len(clock.slept) > 20
    assert all(0.5 <= pause <= 1.0 for pause in clock.slept)


class _Nowhere(FaultyStore):
    """A ClickHouse that never answers."""

    def __init__(self) -> None:
        super().__init__(self)

    def _do(self, step: Callable[[], object]) -> object:
        raise StoreUnavailable("away")


@pytest.mark.parametrize(
    ("error", "calls"),
    [(AWAY, range(CALLS)), (FULL, (4, 7)), (StoreError("refused", 62), (0, 8))],
    ids=["away", "full", "refused"],
)
def test_what_could_not_be_written_is_kept_and_written_later(
    embedded: Store, error: StoreError, calls: Sequence[int]
) -> None:
    stories = []
    for call in calls:
        first, second = story(f"first-{call}"), story(f"second-{call}")
        stories += [first, second]
        faulty = FaultyStore(embedded)
        clock = StoppedClock()
        writer = writer_on(faulty, clock, patience_s=0.0)
        tell(writer, first)
        faulty.plan = [None] * call + [before(error)]
        with pytest.raises(type(error)) as caught:
            writer.flush()
        assert caught.value is error
        assert clock.slept == []
        assert writer.pending > 0
        tell(writer, second)  # more may come in meanwhile
        writer.flush()
        assert writer.pending == 0
    all_there(embedded, *stories)


def test_a_full_disk_leaves_nothing_half_visible(embedded: Store) -> None:
    faulty = FaultyStore(embedded)
    writer = writer_on(faulty, StoppedClock())
    writer.snapshot(story().at(now=250))
    writer.flush()
    told = story().progress(300, 9)
    writer.snapshot(told.at())
    faulty.plan = [None] * 2 + [before(FULL)]  # the row of the job
    with pytest.raises(StoreError, match="disk is full"):
        writer.flush()
    stored = read_truth(embedded, "j")
    assert stored is not None
    assert stored.summary == story().at(now=250).summary
    writer.flush()
    assert read_truth(embedded, "j") == should_be(told.at())


def test_random_faults_lose_and_double_nothing(embedded: Store) -> None:
    rng = Random(7)
    faulty = FaultyStore(embedded)
    clock = StoppedClock()
    writer = writer_on(faulty, clock)
    stories = [story(f"job-{number}") for number in range(6)]
    for told in stories:
        faulty.plan = [rng.choice((None, None, before(AWAY), after(AWAY))) for _ in range(12)]
        tell(writer, told)
        writer.flush()
    assert clock.slept
    all_there(embedded, *stories)


def test_a_batch_is_written_when_it_is_large_enough(embedded: Store) -> None:
    writer = Writer(embedded, max_rows=3)
    events = story().events
    for number, event in enumerate(events[:4], 1):
        writer.event(event, encode_event(event))
        assert count(embedded, "events") == number // 3 * 3
    writer = Writer(embedded, max_bytes=len(encode_event(events[4])))
    writer.event(events[4], encode_event(events[4]))
    assert count(embedded, "events") == 4


def test_while_clickhouse_is_away_the_caller_is_told_so_before_memory_fills(embedded: Store) -> None:
    faulty = FaultyStore(embedded)
    writer = Writer(faulty, max_rows=3, retry=Retry(patience_s=0.0))
    events = story().events
    faulty.plan = [before(AWAY)] * 3
    raised = 0
    for event in events:
        try:
            writer.event(event, encode_event(event))
        except StoreUnavailable:
            raised += 1
    assert raised == 3
    writer.flush()
    assert count(embedded, "events") == len(events)


def test_only_the_latest_of_several_snapshots_is_written(embedded: Store) -> None:
    faulty = FaultyStore(embedded)
    writer = Writer(faulty)
    told = story()
    for second in range(300, 400):
        writer.snapshot(told.at(now=second))
    waiting = writer.pending
    writer.snapshot(told.at(now=400))
    assert writer.pending == waiting
    writer.flush()
    assert count(embedded, "jobs_log") == 1
    assert read_truth(embedded, "j") == should_be(told.at(now=400))


def test_the_same_snapshot_again_writes_nothing(embedded: Store) -> None:
    faulty = FaultyStore(embedded)
    writer = Writer(faulty)
    writer.snapshot(story().at())
    writer.flush()
    assert len(faulty.inserts) == 4
    writer.snapshot(story().at())
    writer.flush()
    assert len(faulty.inserts) == 4


def test_a_snapshot_of_fewer_events_writes_nothing(embedded: Store) -> None:
    faulty = FaultyStore(embedded)
    writer = Writer(faulty)
    writer.snapshot(story().progress(300, 9).at(now=900))
    writer.flush()
    faulty.inserts.clear()
    writer.snapshot(story().at(now=5000))
    writer.flush()
    assert not faulty.inserts
    assert read_truth(embedded, "j") == should_be(story().progress(300, 9).at(now=900))


@pytest.mark.parametrize("same", [True, False], ids=["the same writer", "another one"])
def test_where_the_clock_was_ahead_the_right_one_counts(embedded: Store, same: bool) -> None:
    writer = Writer(embedded)
    ahead = story().at(now=9_000)
    writer.snapshot(ahead)
    writer.flush()
    writer = writer if same else Writer(embedded)
    for now in (5_000, 5_015, 5_030):
        writer.snapshot(story().at(now=now))
        writer.flush()
        truth, right = read_truth(embedded, "j"), should_be(story().at(now=now))
        assert truth is not None
        # By its version it is as of the later time; the next event sets that right.
        assert truth.summary == right.summary.model_copy(update={"version": ahead.summary.version})
        assert truth._replace(summary=right.summary) == right


def test_nothing_to_flush_asks_nothing() -> None:
    Writer(_Nowhere()).flush()


def test_large_numbers_fit(embedded: Store) -> None:
    big = 2**63 - 1
    told = Story("big").submitted().started(1, gpus=2**31 - 1, world_size=2**31 - 1).trains(2, position=big, step=0)
    told.progress(3, 5, step=1).progress(4, big, step=2).progress(5, 6, step=3).progress(6, big, step=4)
    told.progress(7, 6, step=5).progress(8, big, step=6).ended(9, "failed", exit_code=2**32 - 1, signal=2**31 - 1)
    writer = Writer(embedded)
    tell(writer, told)
    writer.flush()
    stored = read_truth(embedded, "big")
    right = should_be(told.at())
    assert stored is not None
    assert stored.summary == right.summary
    assert stored.segments == right.segments
    assert stored.attempts[0].exit_code == 2**32 - 1


def test_times_far_away_fit(embedded: Store) -> None:
    told = Story("far")
    told.events = [
        event.model_copy(update={"ts": 7_258_118_399_000_000 + number})
        for number, event in enumerate(story("far").events)
    ]
    writer = Writer(embedded)
    tell(writer, told)
    writer.flush()
    all_there(embedded, told)


def test_one_event_in_two_spellings_is_one_row_two_contents_are_two(embedded: Store) -> None:
    event = story().events[-1]
    told = encode_event(event)
    content = json.loads(told)
    spaced = json.dumps(dict(reversed(content.items())), indent=1).encode()
    unknown = json.dumps(content | {"some_day": 1}).encode()
    for raw in (told, spaced, unknown):
        writer = Writer(embedded)  # as after a crash
        writer.event(decode_event(raw), raw)
        writer.flush()
    assert count(embedded, "events") == 1
    other = event.model_copy(update={"ts": event.ts, "host": "elsewhere"})
    writer.event(other, encode_event(other))
    writer.flush()
    assert count(embedded, "events") == 2
    raws = {row[0] for row in embedded.query("SELECT raw FROM events").rows}
    assert encode_event(other).decode() in raws
    assert raws & {told.decode(), spaced.decode(), unknown.decode()}
