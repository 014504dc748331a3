import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ettwatch_clickhouse import Store, StoreError, Writer, rebuild, set_retention
from ettwatch_clickhouse.rebuild import RebuildReport
from ettwatch_clickhouse.stored import stored_events
from ettwatch_core import JobState, Rules, apply, settle, snapshot
from ettwatch_schemas import Event, decode_event, encode_event
from support.clickhouse import BASE_TABLES, FaultyStore, StoppedClock, before, count, read_truth, should_be
from support.story import START, Story

RULES = Rules()
CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.jsonl"))
DAY = 86_400.0


def write(store: Store, events: list[Event], *, now: int | None = None, rules: Rules = RULES) -> None:
    """Fold and publish as a process that follows the jobs does."""
    writer = Writer(store)
    states: dict[str, JobState] = {}
    for event in events:
        state = states.setdefault(event.job, JobState(event.job))
        apply(state, event, rules)
        writer.event(event, encode_event(event))
    for state in states.values():
        writer.snapshot(snapshot(state, rules, now))
    writer.flush()


def hanging(job: str = "hangs") -> Story:
    """A job whose figures depend on the hang limit."""
    story = Story(job).submitted().started(60).trains(100, report_every_s=10)
    return story.progress(200, 10).progress(600, 20).trained(700, 20).ended(710, "succeeded").over(720)


def all_rows(store: Store) -> dict[str, list[tuple[object, ...]]]:
    columns = {
        "jobs": "* EXCEPT (published)",
        "attempts": "* EXCEPT (final)",
        "segments": "*",
        "phases": "* EXCEPT (final)",
    }
    return {view: store.query(f"SELECT {what} FROM {view} ORDER BY ALL").rows for view, what in columns.items()}


def test_the_same_comes_out_of_the_stored_events(store: Store) -> None:
    events = []
    for case in CASES:
        for line in case.read_bytes().splitlines():
            try:
                events.append(decode_event(line))
            except ValueError:
                continue
    write(store, events)
    before_it = all_rows(store)
    told: list[tuple[int, int]] = []
    report = rebuild(store, RULES, progress=lambda done, total: told.append((done, total)))
    number = len({(event.job, encode_event(event)) for event in events})
    assert report == RebuildReport(jobs=len({event.job for event in events}), events=number, rejected=0, kept=0)
    assert all_rows(store) == before_it
    assert told[-1] == (number, number)
    left = store.query("SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%_new'").rows
    assert left == []


def test_twice_is_as_good_as_once(embedded: Store) -> None:
    write(embedded, hanging().events)
    rebuild(embedded, RULES)
    once = all_rows(embedded)
    rebuild(embedded, RULES)
    assert all_rows(embedded) == once


def test_nothing_stored_gives_nothing(embedded: Store) -> None:
    write(embedded, hanging().events)
    embedded.command("TRUNCATE TABLE events_log")
    assert rebuild(embedded, RULES) == RebuildReport(0, 0, 0, 0)
    assert count(embedded, "jobs") == 0


@pytest.mark.parametrize("after_s", [0, 700, 3600, 7 * 3600])
def test_an_open_job_is_made_as_of_its_stored_summary(embedded: Store, after_s: float) -> None:
    story = Story("open").submitted().started(60).trains(100).progress(200, 10)
    write(embedded, story.events, now=START + round((200 + after_s) * 1e6) + 123_456)
    status = embedded.query("SELECT status FROM jobs").rows
    old = all_rows(embedded)
    rebuild(embedded, RULES)
    assert embedded.query("SELECT status FROM jobs").rows == status
    assert all_rows(embedded) == old
    rebuild(embedded, RULES, now=START + round(30 * DAY * 1e6))
    assert embedded.query("SELECT status FROM jobs").rows == [("lost",)]


class Watched(FaultyStore):
    """Calls someone before each statement."""

    def __init__(self, inner: Store, watch: Callable[[str], None]) -> None:
        super().__init__(inner)
        self.watch = watch

    def command(self, sql: str) -> None:
        self.watch(sql)
        self.inner.command(sql)
        self.watch("after " + sql)


def test_readers_see_the_old_tables_or_the_new_ones(embedded: Store) -> None:
    write(embedded, hanging().events)
    other = Rules(hang_after=30_000_000)
    old, new = should_be(hanging().at()), should_be(hanging().at(rules=other))
    assert old.summary.effective_s != new.summary.effective_s
    seen = []

    def watch(sql: str) -> None:
        truth = read_truth(embedded, "hangs")
        assert truth in (old, new)
        seen.append(("EXCHANGE" in sql, truth == new))

    rebuild(Watched(embedded, watch), other)
    switch = seen.index((True, False)) + 1
    assert [is_new for _, is_new in seen] == [False] * switch + [True] * (len(seen) - switch)
    assert read_truth(embedded, "hangs") == new


@pytest.mark.parametrize("call", [1, 8, 12, 16, 20, 24])
def test_a_failure_leaves_the_old_tables_and_no_others(embedded: Store, call: int) -> None:
    write(embedded, hanging().events)
    old = all_rows(embedded)
    faulty = FaultyStore(embedded)
    faulty.plan = [None] * call + [before(StoreError("no"))]
    with pytest.raises(StoreError, match="no"):
        rebuild(faulty, Rules(hang_after=30_000_000))
    assert all_rows(embedded) == old
    assert rebuild(embedded, RULES).jobs == 1
    assert all_rows(embedded) == old


def test_what_a_living_writer_writes_meanwhile_is_kept(embedded: Store) -> None:
    story = hanging("lives")
    state = JobState("lives")
    writer = Writer(embedded)
    steps = iter(story.events)

    def publish() -> None:
        event = next(steps, None)
        if event is not None:
            apply(state, event, RULES)
            writer.event(event, encode_event(event))
        writer.snapshot(snapshot(state, RULES))
        writer.flush()

    publish()
    publish()
    write(embedded, hanging("other").events)
    calls = []

    def watch(sql: str) -> None:
        calls.append(sql)
        if sql.startswith(("CREATE", "after EXCHANGE", "INSERT")):
            publish()

    rebuild(Watched(embedded, watch), RULES)
    assert len(calls) > 10
    publish()
    assert read_truth(embedded, "lives") == should_be(snapshot(state, RULES))
    assert read_truth(embedded, "other") == should_be(hanging("other").at())


def test_what_was_final_stays_final(embedded: Store) -> None:
    """A writer that lives on does not tell it again, and its successor must not take it back."""
    story = Story("long").submitted().started(60).phase(70, 90, "trainer_init.device_init").trains(100)
    for hour in range(1, 40):
        story.phase(hour * 3600 + 1, hour * 3600 + 9, "wasted_training.checkpoint_save")
        story.progress(hour * 3600 + 20, hour)
    state = JobState("long")
    writer = Writer(embedded)
    finals = []
    for event in story.events:
        apply(state, event, RULES)
        writer.event(event, encode_event(event))
        settled = settle(state, RULES)
        if settled is not None:
            finals.append(settled)
            writer.settled(settled, snapshot(state, RULES).summary.version)
    writer.snapshot(snapshot(state, RULES))
    writer.flush()
    assert len(finals) > 10
    right = should_be(snapshot(state, RULES), finals)
    assert read_truth(embedded, "long") == right
    rebuild(embedded, RULES)
    assert read_truth(embedded, "long") == right
    again = Writer(embedded)
    again.snapshot(snapshot(state, RULES, state.newest + 5_000_000))
    again.flush()
    assert read_truth(embedded, "long") == should_be(snapshot(state, RULES, state.newest + 5_000_000), finals)


def test_a_job_of_which_events_have_expired_is_left_alone(embedded: Store) -> None:
    set_retention(embedded, "events", 10)
    try:
        write(embedded, [*hanging("old").events, *hanging("whole").events])
        old = all_rows(embedded)
        embedded.command(
            "ALTER TABLE events_log DELETE WHERE job = 'old' AND kind = 'progress' SETTINGS mutations_sync = 2"
        )
        clock = StoppedClock(START / 1e6 + 11 * DAY)
        report = rebuild(embedded, RULES, clock=clock)
        assert (report.jobs, report.kept) == (1, 1)
        assert all_rows(embedded) == old
        # Events that are missing for another reason are missing.
        clock = StoppedClock(START / 1e6 + 5 * DAY)
        report = rebuild(embedded, RULES, clock=clock)
        assert (report.jobs, report.kept) == (2, 0)
        assert all_rows(embedded) != old
    finally:
        set_retention(embedded, "events", 400)


def test_an_event_that_cannot_be_read_is_counted_and_left_out(embedded: Store) -> None:
    write(embedded, hanging().events)
    old = all_rows(embedded)
    row = ("hangs", START, "x", "new_kind", 2, None, 0, None, "trainer", '{"v":2}', START)
    columns = ["job", "ts", "id", "kind", "v", "attempt", "rank", "host", "source", "raw", "received"]
    embedded.insert("events_log", columns, [row])
    late = hanging().events[0].model_copy(update={"id": "late", "ts": START - round(DAY * 1e6)})
    embedded.insert(
        "events_log", columns, [("a", late.ts, "late", late.kind, 1, None, 0, None, "trainer", "no JSON", START)]
    )
    report = rebuild(embedded, RULES)
    assert (report.jobs, report.rejected) == (1, 2)
    assert all_rows(embedded) == old


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
def test_events_come_in_order_and_once_whatever_the_page(embedded: Store, page: int) -> None:
    jobs = [Story(name).submitted().started(5).trains(6).progress(7, 1).progress(7, 2) for name in ("a", "é", "b")]
    for told in jobs:
        for _ in range(2):
            write(embedded, told.events)
    rows = [(event.job, json.loads(event.raw)["ts"]) for event in stored_events(embedded, page=page)]
    assert rows == sorted((e.job, e.ts) for told in jobs for e in told.events)


def test_tables_left_by_a_rebuild_that_was_killed_are_no_obstacle(embedded: Store) -> None:
    write(embedded, hanging().events)
    for table in BASE_TABLES:
        if table != "events_log":
            embedded.command(f"CREATE TABLE {table}_new AS {table}")
    assert rebuild(embedded, RULES).jobs == 1
    assert read_truth(embedded, "hangs") == should_be(hanging().at())


def test_what_was_dropped_is_made_anew(embedded: Store) -> None:
    write(embedded, hanging().events)
    old = all_rows(embedded)
    for dropped in ("TABLE jobs_log", "TABLE phases_log", "VIEW segments", "VIEW events"):
        embedded.command(f"DROP {dropped} SYNC")
    assert rebuild(embedded, RULES).jobs == 1
    assert all_rows(embedded) == old
    assert count(embedded, "events") == len(hanging().events)


def test_without_the_events_nothing_is_touched(embedded: Store) -> None:
    write(embedded, hanging().events)
    old = all_rows(embedded)
    embedded.command("RENAME TABLE events_log TO away")
    try:
        with pytest.raises(StoreError, match="table events_log is missing, from which .* restore it"):
            rebuild(embedded, RULES)
        assert all_rows(embedded) == old
    finally:
        embedded.command("RENAME TABLE away TO events_log")
