"""The cases of `test_truth.py` one by one, with answers told by hand."""

from collections.abc import Sequence

import pytest

from ettwatch_clickhouse import Store, Writer
from ettwatch_core import Rules, Settled, Snapshot
from support.clickhouse import FaultyStore, StoppedClock, Truth, count, read_truth, should_be
from support.story import START, Story

HOUR = 3600.0
RULES = Rules(lateness=None, lost_after=10**15, silent_after=10**15)
# The stories begin at 14:13:20.
FIRST_CELL = START - START % (3600 * 1_000_000)


def running(hours: float = 4, attempts: int = 1) -> Story:
    """A job that trains; it has not ended."""
    story = Story("j").submitted().started(60).phase(100, 200, "trainer_init.device_init").trains(500)
    story.progress(600, 100)
    for number in range(1, attempts):
        story.ended(700 * number, "failed", attempt=number - 1).started(700 * number + 10, number)
    return story.progress(hours * HOUR, 200, attempt=attempts - 1)


def write(store: Store, *snaps: Snapshot, writer: Writer | None = None) -> Writer:
    writer = writer or Writer(store)
    for snap in snaps:
        writer.snapshot(snap)
        writer.flush()
    return writer


def cells_of(store: Store) -> list[int]:
    """Which hours of the job have segments, counted from its first."""
    rows = store.query(
        "SELECT DISTINCT intDiv(toUnixTimestamp64Second(start), 3600) AS h FROM segments ORDER BY h"
    ).rows
    return [int(str(row[0])) - FIRST_CELL // (3600 * 1_000_000) for row in rows]


def test_a_batch_written_twice_counts_once(store: Store) -> None:
    story = running()
    writer = Writer(store)
    for event in story.events:
        writer.event(event, b"{}%d" % event.ts)
    inner = _Doubled(store)
    writer._store = inner
    write(inner, story.at(), writer=writer)
    assert inner.doubled > 3
    assert read_truth(store, "j") == should_be(story.at())
    assert count(store, "events") == len(story.events)


class _Doubled(FaultyStore):
    """Inserts everything twice, without tokens."""

    doubled = 0

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, token: str | None = None
    ) -> None:
        self.doubled += 1
        self.inner.insert(table, columns, rows)
        self.inner.insert(table, columns, rows)


def test_a_job_that_looked_longer_leaves_no_hours_behind(embedded: Store) -> None:
    story = running(hours=2)
    writer = write(embedded, story.at(now=7 * HOUR))
    assert cells_of(embedded) == [0, 1, 2, 3, 4, 5, 6, 7]
    story.ended(2.5 * HOUR, "succeeded").over(2.5 * HOUR)
    write(embedded, story.at(), writer=writer)
    assert cells_of(embedded) == [0, 1, 2]
    assert read_truth(embedded, "j") == should_be(story.at())


def test_so_it_is_where_another_process_had_written_them(embedded: Store) -> None:
    story = running(hours=2)
    write(embedded, story.at(now=7 * HOUR))
    story.ended(2.5 * HOUR, "succeeded").over(2.5 * HOUR)
    write(embedded, story.at())
    assert cells_of(embedded) == [0, 1, 2]
    assert read_truth(embedded, "j") == should_be(story.at())


def test_so_it_is_where_that_process_died_before_the_row_of_the_job(embedded: Store) -> None:
    story = running(hours=2)
    write(embedded, story.at(now=2 * HOUR))
    dying = FaultyStore(embedded)
    writer = Writer(dying)
    writer.snapshot(story.at(now=7 * HOUR))
    writer._encode()
    while writer._outbox[0].table != "jobs_log":
        insert = writer._outbox.popleft()
        embedded.insert(insert.table, insert.columns, insert.rows)
    story.ended(2.5 * HOUR, "succeeded").over(2.5 * HOUR)
    write(embedded, story.at())
    assert cells_of(embedded) == [0, 1, 2]
    assert read_truth(embedded, "j") == should_be(story.at())


@pytest.mark.parametrize("last", ["attempts_log", "segments_log", "jobs_log"])
def test_what_a_process_left_half_written_is_written_by_one_whose_clock_is_behind(embedded: Store, last: str) -> None:
    story = running(hours=2).ended(2.5 * HOUR, "succeeded").over(2.5 * HOUR)
    writer = Writer(FaultyStore(embedded))
    writer.snapshot(story.at(now=7 * HOUR))
    writer._encode()
    while writer._outbox[0].table != last:
        insert = writer._outbox.popleft()
        embedded.insert(insert.table, insert.columns, insert.rows)
    # No event comes any more: what the next one writes is the last word for as long as nobody asks.
    write(embedded, story.at(now=6 * HOUR))
    truth, right = read_truth(embedded, "j"), should_be(story.at(now=6 * HOUR))
    assert truth is not None
    assert truth.summary.version == story.at(now=7 * HOUR).summary.version
    assert truth == right._replace(summary=truth.summary)
    assert truth.summary == right.summary.model_copy(update={"version": truth.summary.version})


def test_so_it_is_with_what_is_final_by_then(embedded: Store) -> None:
    story = running(hours=2)
    write(embedded, story.at(now=4.5 * HOUR))
    writer = Writer(FaultyStore(embedded))
    story.progress(6 * HOUR, 900).ended(6.5 * HOUR, "succeeded").over(6.5 * HOUR)
    writer.snapshot(story.at(now=9 * HOUR))
    writer._encode()
    while writer._outbox[0].table != "segments_log":
        insert = writer._outbox.popleft()
        embedded.insert(insert.table, insert.columns, insert.rows)
    # Of the hour in which the first one stopped half is there, of those after it nothing.
    ahead = story.at(now=8 * HOUR)
    done = final(ahead)
    assert done.segments[-1].end - START > 5 * HOUR * 1_000_000
    again = Writer(embedded)
    again.settled(done, ahead.summary.version)
    again.snapshot(rest(ahead, done))
    again.flush()
    truth, right = read_truth(embedded, "j"), should_be(rest(ahead, done), [done])
    assert truth is not None
    assert truth == right._replace(summary=truth.summary)


def test_an_end_on_the_hour_leaves_no_empty_hour(embedded: Store) -> None:
    story = running(hours=2)
    writer = write(embedded, story.at(now=7 * HOUR))
    to_the_hour = (FIRST_CELL - START) / 1e6 + 4 * HOUR
    story.ended(to_the_hour, "succeeded").over(to_the_hour)
    write(embedded, story.at(), writer=writer)
    assert cells_of(embedded) == [0, 1, 2, 3]
    # The job comes back: it had not ended after all.
    story.started(5 * HOUR, 1)
    write(embedded, story.at(now=6 * HOUR), writer=writer)
    assert cells_of(embedded) == [0, 1, 2, 3, 4, 5, 6]
    assert read_truth(embedded, "j") == should_be(story.at(now=6 * HOUR))


def test_a_job_that_shrinks_to_nothing_has_no_segments(embedded: Store) -> None:
    story = Story("j").submitted(0)
    writer = write(embedded, story.at(now=3 * HOUR))
    assert cells_of(embedded) == [0, 1, 2, 3]
    story.over(0, "cancelled")
    write(embedded, story.at(), writer=writer)
    assert cells_of(embedded) == []
    assert read_truth(embedded, "j") == should_be(story.at())


def test_a_begin_told_later_takes_back_the_hours_before(embedded: Store) -> None:
    story = Story("j").started(60).progress(3 * HOUR, 1)
    early = Story("j").started(60).progress(3 * HOUR, 1)
    early.submitted(-5 * HOUR)
    writer = write(embedded, early.at(rules=RULES))
    assert cells_of(embedded)[0] == -5
    # The one who said so was wrong: the same id again, and a smaller content counts.
    snap = story.at(rules=RULES)
    newer = snap._replace(summary=snap.summary.model_copy(update={"version": early.at().summary.version + (1 << 32)}))
    write(embedded, newer, writer=writer)
    assert cells_of(embedded) == [0, 1, 2, 3]
    assert read_truth(embedded, "j") == should_be(newer)


def renewed(snap: Snapshot, than: Snapshot) -> Snapshot:
    """The snapshot with a version above that of another."""
    version = than.summary.version + (1 << 32)
    return snap._replace(summary=snap.summary.model_copy(update={"version": version}))


@pytest.mark.parametrize("same_writer", [True, False])
def test_what_a_correction_removes_is_gone(embedded: Store, same_writer: bool) -> None:
    long = running(attempts=3).phase(700, 900, "trainer_init.device_init", attempt=1).at()
    short = renewed(running(attempts=2).at(), long)
    assert [a.attempt for a in long.attempts] == [0, 1, 2]
    writer = write(embedded, long)
    write(embedded, short, writer=writer if same_writer else None)
    assert read_truth(embedded, "j") == should_be(short)
    # ... and comes back when it is told again.
    back = renewed(long, short)
    write(embedded, back, writer=writer if same_writer else None)
    assert read_truth(embedded, "j") == should_be(back)


def test_a_run_of_everything_says_nothing_before_it_has_seen_as_much(embedded: Store) -> None:
    story = running(attempts=2)
    whole = story.at(now=5 * HOUR)
    write(embedded, whole)
    again = Writer(embedded)
    for number in range(1, len(story.events)):
        part = Story("j")
        part.events = story.events[:number]
        write(embedded, part.at(now=20 * HOUR), writer=again)
        assert read_truth(embedded, "j") == should_be(whole)
    write(embedded, story.at(now=6 * HOUR), writer=again)
    assert read_truth(embedded, "j") == should_be(story.at(now=6 * HOUR))


def test_part_of_the_events_run_again_destroys_nothing(embedded: Store) -> None:
    story = running(attempts=2)
    whole = story.at(now=5 * HOUR)
    write(embedded, whole)
    part = Story("j").submitted().started(60).phase(100, 150, "trainer_init.device_init").at(now=3 * HOUR)
    writer = Writer(embedded)
    writer.settled(Settled(part.segments, part.attempts, part.spans), part.summary.version)
    write(embedded, part, writer=writer)
    right = should_be(whole)
    told = read_truth(embedded, "j")
    assert told is not None
    assert told._replace(spans=right.spans) == right
    assert [span for span in told.spans if span in right.spans] == right.spans


def test_of_equal_versions_the_later_write_counts(embedded: Store) -> None:
    story = running()
    first, second = story.at(now=5 * HOUR), story.at(now=5 * HOUR + 0.25)
    assert first.summary.version == second.summary.version
    clock = StoppedClock()
    write(embedded, first, writer=Writer(embedded, clock=clock))
    clock.now -= 3600  # the other machine's clock is an hour behind
    write(embedded, second, writer=Writer(embedded, clock=clock))
    assert read_truth(embedded, "j") == should_be(second)


def final(snap: Snapshot) -> Settled:
    """All that is over in a snapshot, as if it were final."""
    cell = snap.segments[-1].start - snap.segments[-1].start % (3600 * 1_000_000)
    return Settled(
        [s._replace(end=min(s.end, cell)) for s in snap.segments if s.start < cell],
        [a for a in snap.attempts if not a.open],
        [s for s in snap.spans if s.end < cell],
    )


def rest(snap: Snapshot, settled: Settled) -> Snapshot:
    """The snapshot without what was handed out as final."""
    cell = settled.segments[-1].end
    return snap._replace(
        attempts=[a for a in snap.attempts if a not in settled.attempts],
        segments=[s._replace(start=max(s.start, cell)) for s in snap.segments if s.end > cell],
        spans=[s for s in snap.spans if s not in settled.spans],
        final_before=cell,
    )


def test_what_is_final_stays_when_the_snapshot_no_longer_tells_it(embedded: Store) -> None:
    snap = running(attempts=2).phase(4 * HOUR + 2, None, "wasted_training.evaluation", attempt=1).at(now=5 * HOUR)
    writer = write(embedded, snap)
    done = final(snap)
    assert done.attempts
    assert done.spans
    writer.settled(done, snap.summary.version)
    after = rest(snap, done)
    write(embedded, after, writer=writer)
    assert read_truth(embedded, "j") == should_be(after, [done])
    # A new process knows only the rest.
    write(embedded, after)
    assert read_truth(embedded, "j") == should_be(after, [done])


def test_what_became_final_while_another_had_seen_more_stays_too(embedded: Store) -> None:
    story = running(attempts=2)
    ahead = story.at(now=5 * HOUR)
    write(embedded, ahead)
    # A run of everything settles all that is over long before it has seen as much as was published ...
    done = final(ahead)
    again = Writer(embedded)
    again.settled(done, 5)
    again.flush()
    assert read_truth(embedded, "j") == should_be(ahead)
    # ... dies, and its successor, which knows only the rest, catches up.
    story.progress(6 * HOUR, 300, attempt=1)
    after = rest(story.at(), done)
    write(embedded, after)
    truth = read_truth(embedded, "j")
    assert truth is not None
    assert truth.attempts == should_be(after, [done]).attempts
    assert truth.spans == should_be(after, [done]).spans
    assert truth == Truth(*should_be(after, [done]))


def test_an_unchanged_tail_costs_one_row(embedded: Store) -> None:
    story = running(hours=6, attempts=3)
    faulty = FaultyStore(embedded)
    writer = write(faulty, story.at())
    faulty.inserts.clear()
    story.progress(6 * HOUR + 10, 300, attempt=2)
    snap = story.at()
    writer.snapshot(snap)
    writer._encode()
    rows = {insert.table: len(insert.rows) for insert in writer._outbox}
    assert rows == {"segments_log": 1, "attempts_log": 1, "jobs_log": 1}
    writer.flush()
    assert read_truth(embedded, "j") == should_be(snap)


def test_a_job_that_was_forgotten_is_looked_up_again(embedded: Store) -> None:
    faulty = FaultyStore(embedded)
    writer = Writer(faulty, known_rows=1)
    stories = [Story(name).submitted().started(60).trains(100).progress(HOUR, 5) for name in ("a", "b", "c")]
    for hour in (2, 3):
        for story in stories:
            write(faulty, story.progress(hour * HOUR, hour * 5).at(), writer=writer)
    for story in stories:
        assert read_truth(embedded, story.job) == should_be(story.at())
