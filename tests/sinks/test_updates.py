"""From updates to rows: what a batch says of each row, and what it takes back."""

from typing import Any

import pytest

from ettwatch_clickhouse import Store
from ettwatch_clickhouse.rows import event_row
from ettwatch_clickhouse.standing import look_up
from ettwatch_clickhouse.updates import Insert, Standing, UpdateBatch
from ettwatch_clickhouse.writeids import WriteIds
from ettwatch_core import CELL, Published, Snapshot
from ettwatch_schemas import (
    AttemptSummary,
    AttemptsUpdate,
    Hour,
    PhaseKey,
    PhaseSpan,
    PhasesUpdate,
    Segment,
    SegmentsUpdate,
    Update,
    encode_event,
)
from support.clickhouse import count, read_truth, should_be
from support.story import START, Story

V = 1 << 32
T0 = START // CELL * CELL


def attempt(number: int, end: int = 10) -> AttemptSummary:
    (found,) = Story("j").started(0).ended(end, "succeeded").at().attempts
    return found.model_copy(update={"attempt": number})


def span(start: int, end: int = 100, **changes: Any) -> PhaseSpan:
    return PhaseSpan("j", 0, "trainer_init", start, end, 1, False, False, 0, 0, 0, 0, False)._replace(**changes)


def attempts(version: int, *, opened: Any = (), final: Any = (), gone: Any = (), whole: bool = False) -> AttemptsUpdate:
    return AttemptsUpdate("j", version * V, whole, list(opened), list(final), list(gone))


def phases(version: int, *, opened: Any = (), final: Any = (), gone: Any = (), whole: bool = False) -> PhasesUpdate:
    return PhasesUpdate("j", version * V, whole, list(opened), list(final), list(gone))


def hours(
    version: int, *numbers: int, first: int | None = 0, last: int | None = 9, whole: bool = False
) -> SegmentsUpdate:
    begin, end = (None if n is None else T0 + n * CELL for n in (first, last))
    told = [
        Hour(T0 + n * CELL, [Segment("j", 0, "shutdown", T0 + n * CELL, T0 + n * CELL + version, 1)]) for n in numbers
    ]
    return SegmentsUpdate("j", version * V, whole, begin, end, told)


def made(*updates: Update, standing: Standing | None = None) -> dict[str, Insert]:
    batch = UpdateBatch()
    for update in updates:
        batch.update(update)
    return {insert.table: insert for insert in batch.inserts(standing or Standing(), WriteIds(lambda: 1.0))}


def put(store: Store, *updates: Update) -> None:
    """Write a batch as the sink does."""
    batch = UpdateBatch()
    for update in updates:
        batch.update(update)
    for insert in batch.inserts(look_up(store, batch.wholes()), WriteIds(lambda: 1.0)):
        store.insert(insert.table, insert.columns, insert.rows)


def seen(store: Store, view: str = "attempts", what: str = "attempt") -> list[Any]:
    return [row if len(row) > 1 else row[0] for row in store.query(f"SELECT {what} FROM {view} ORDER BY ALL").rows]


def hours_seen(store: Store) -> list[Any]:
    return seen(store, "segments", f"intDiv(toUnixTimestamp64Micro(start) - {T0}, {CELL}), duration_us")


def test_one_row_of_each_key_and_one_insert_of_each_table() -> None:
    story = Story("j").submitted().started(60).phase(70, 90, "trainer_init.device_init").trains(100).progress(200, 5)
    updates: list[Update] = []
    published = Published()
    for second in range(250, 260):
        snap = story.at(now=second)
        said = published.publication(snap)
        assert said.summary is not None
        updates += [said.summary, *said.attempts, *said.phases, *said.segments]
    got = made(*updates)
    assert list(got) == ["phases_log", "attempts_log", "segments_log", "jobs_log"]  # the job comes last
    assert {table: len(insert.rows) for table, insert in got.items()} == {
        "phases_log": 1,
        "attempts_log": 1,
        "segments_log": 1,
        "jobs_log": 1,
    }
    assert got["jobs_log"].rows[0][1] == story.at(now=259).summary.version


def versions(insert: Insert) -> list[tuple[Any, ...]]:
    at = [insert.columns.index(name) for name in ("attempt", "version", "final", "gone")]
    return sorted((row[at[0]], int(str(row[at[1]])) // V, row[at[2]], row[at[3]]) for row in insert.rows)


@pytest.mark.parametrize("backwards", [False, True])
def test_the_greatest_version_counts_and_final_before_all(backwards: bool) -> None:
    told: list[Update] = [
        attempts(1, opened=[attempt(0), attempt(1), attempt(2), attempt(3)]),
        attempts(2, opened=[attempt(1)], final=[attempt(0)]),
        attempts(3, opened=[attempt(0)], gone=[2, 0]),
    ]
    got = made(*(reversed(told) if backwards else told))
    assert versions(got["attempts_log"]) == [
        (0, 2, True, False),
        (1, 2, False, False),
        (2, 3, False, True),
        (3, 1, False, False),
    ]


def test_written_numbers_differ() -> None:
    got = made(attempts(1, opened=[attempt(0), attempt(1)]), hours(1, 0, 1))
    numbers = [row[insert.columns.index("written")] for insert in got.values() for row in insert.rows]
    assert len(set(numbers)) == len(numbers) == 4


def test_what_a_whole_update_does_not_list_is_gone(embedded: Store) -> None:
    put(embedded, attempts(1, opened=[attempt(1), attempt(2), attempt(3)], final=[attempt(0)]))
    put(embedded, attempts(2, opened=[attempt(2)], final=[attempt(3)], whole=True))
    assert seen(embedded) == [0, 2, 3]
    # ... neither what the batch itself told before
    put(embedded, attempts(3, opened=[attempt(7)]), attempts(4, opened=[attempt(4)], whole=True))
    assert seen(embedded) == [0, 3, 4]
    put(embedded, attempts(5, whole=True))
    assert seen(embedded) == [0, 3]


def test_only_pending_rows_of_its_own_jobs_are_looked_at(embedded: Store) -> None:
    other = attempts(1, opened=[attempt(1).model_copy(update={"job": "k"})])
    put(embedded, AttemptsUpdate("k", V, True, other.open, [], []), attempts(1, opened=[attempt(1)]))
    put(embedded, attempts(2, whole=True))
    assert seen(embedded, what="job, attempt") == [("k", 1)]
    before = count(embedded, "attempts_log")
    put(embedded, attempts(3, whole=True))
    embedded.command("OPTIMIZE TABLE attempts_log FINAL")
    assert count(embedded, "attempts_log") <= before  # what is gone is not said again


def test_a_whole_update_takes_back_no_newer_row(embedded: Store) -> None:
    put(embedded, attempts(5, opened=[attempt(1)]), phases(5, opened=[span(0)]), hours(5, 9))
    put(embedded, attempts(4, whole=True), phases(4, whole=True), hours(4, first=0, last=3, whole=True))
    assert seen(embedded) == [1]
    assert seen(embedded, "phases", "toUnixTimestamp64Micro(start)") == [0]
    assert hours_seen(embedded) == [(9, 5)]
    put(embedded, attempts(6, whole=True), phases(6, whole=True), hours(6, first=0, last=3, whole=True))
    assert seen(embedded) == seen(embedded, "phases") == hours_seen(embedded) == []


def test_a_final_row_wins_with_a_lower_version(embedded: Store) -> None:
    put(embedded, attempts(9, opened=[attempt(0)]), phases(9, opened=[span(5)]))
    put(embedded, attempts(3, final=[attempt(0)]), phases(3, final=[span(5)]))
    assert seen(embedded, what="final, version") == [(True, 3 * V)]
    assert seen(embedded, "phases", "final, version") == [(True, 3 * V)]
    put(embedded, attempts(20, whole=True), phases(20, whole=True))  # it is not pending any more
    put(embedded, attempts(21, gone=[0]), phases(21, gone=[PhaseKey.of(span(5))]))
    assert len(seen(embedded)) == len(seen(embedded, "phases")) == 1
    for table in ("attempts_log", "phases_log"):
        embedded.command(f"OPTIMIZE TABLE {table} FINAL")
        assert seen(embedded, table, "final, version") == [(True, 3 * V)]


def test_phases_are_told_apart_by_their_keys(embedded: Store) -> None:
    beside = [span(1, background=True, last_rank=rank) for rank in (0, 3)]
    put(embedded, phases(1, opened=[span(1), span(2), span(1, phase="shutdown"), *beside]))
    assert len(seen(embedded, "phases")) == 5
    put(embedded, phases(2, opened=[span(2), beside[1]], whole=True))
    assert seen(embedded, "phases", "toUnixTimestamp64Micro(start), background, last_rank") == [
        (1, True, 3),
        (2, False, 0),
    ]
    put(embedded, phases(3, gone=[PhaseKey.of(beside[1])]))
    assert seen(embedded, "phases", "toUnixTimestamp64Micro(start)") == [2]


def test_hours_outside_are_emptied(embedded: Store) -> None:
    put(embedded, hours(1, *range(10)))
    put(embedded, hours(2, 3, first=2, last=4))  # no word of the others
    assert [hour for hour, _ in hours_seen(embedded)] == list(range(10))
    put(embedded, hours(3, 5), hours(4, 3, first=2, last=4, whole=True))
    assert hours_seen(embedded) == [(2, 1), (3, 4), (4, 1)]
    rows = count(embedded, "segments_log")
    put(embedded, hours(5, first=2, last=4, whole=True))
    assert count(embedded, "segments_log") <= rows  # what is empty is not emptied once more
    put(embedded, hours(6, first=None, last=None, whole=True))
    assert hours_seen(embedded) == []


def test_many_jobs_are_looked_up_in_a_few_queries(embedded: Store) -> None:
    class Counting:
        queries = 0

        def query(self, *args: Any) -> Any:
            self.queries += 1
            return embedded.query(*args)

    batch = UpdateBatch()
    for number in range(1_200):
        batch.update(AttemptsUpdate(f"job-{number}", V, True, [], [], []))
        batch.update(SegmentsUpdate(f"job-{number}", V, True, None, None, []))
    store: Any = Counting()
    assert look_up(store, batch.wholes()) == Standing()
    assert store.queries == 6


def test_a_publication_and_its_events_are_what_the_views_say(store: Store) -> None:
    story = Story("j").submitted().started(60).phase(70, 90, "trainer_init.device_init").trains(100).progress(200, 5)
    snap: Snapshot = story.at(now=4000)
    said = Published().publication(snap)
    assert said.summary is not None
    batch = UpdateBatch()
    updates: list[Update] = [said.summary, *said.attempts, *said.phases, *said.segments]
    for update in updates:
        batch.update(update)
    batch.events([event_row(event, encode_event(event), START) for event in story.events])
    inserts = batch.inserts(look_up(store, batch.wholes()), WriteIds(lambda: 1.0))
    for insert in inserts * 2:  # twice does no harm
        store.insert(insert.table, insert.columns, insert.rows)
    assert read_truth(store, "j") == should_be(snap)
    assert seen(store, "events", "id") == sorted(event.id for event in story.events)
