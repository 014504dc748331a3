"""The rollups are what a recount from the views gives, whatever was corrected, doubled, interrupted or made anew."""

from collections.abc import Callable, Sequence
from random import Random

import pytest

from ettwatch_clickhouse import EmbeddedStore, Store, StoreError, Writer, rebuild, set_retention
from ettwatch_clickhouse.rollups import RolledUp, Rollups
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import Event, encode_event
from support.clickhouse import FaultyStore, StoppedClock, after, before
from support.jobs import random_job
from support.recount import check_rollups, held, recount
from support.story import START, Story

RULES = Rules(lateness=None, lost_after=10**15, silent_after=10**15)
HOUR = 3600.0


def publish(writer: Writer, events: Sequence[Event], now: int | None = None) -> None:
    state = JobState(events[0].job)
    for event in events:
        apply(state, event, RULES)
        writer.event(event, encode_event(event))
    writer.snapshot(snapshot(state, RULES, now))
    writer.flush()


def job(name: str = "j", hours: float = 3) -> Story:
    story = Story(name).submitted().started(60).phase(100, 200, "trainer_init.device_init").trains(500)
    return story.progress(600, 100).progress(hours * HOUR, 200)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.mark.parametrize("seed", range(4))
def test_random_lives_leave_what_a_recount_gives(embedded: EmbeddedStore, clock: StoppedClock, seed: int) -> None:
    rng = Random(seed)
    jobs = [random_job(rng, f"job-{i}", size=rng.choice(("small", "medium"))) for i in range(rng.randint(1, 5))]
    writer = Writer(embedded, clock=clock)
    rollups = Rollups(embedded, clock=clock, full_every_s=rng.choice((0.0, 600.0, 10**9)))
    for _ in range(rng.randint(2, 8)):
        for events in rng.sample(jobs, rng.randint(1, len(jobs))):
            told = events[: rng.randint(1, len(events))]  # fewer than before at times: what was told is taken back
            ahead = rng.choice((None, 0, 10**9, 4 * 3_600_000_000))
            writer = Writer(embedded, clock=clock) if rng.random() < 0.3 else writer
            publish(writer, told, None if ahead is None else told[-1].ts + ahead)
            clock.now += rng.choice((0.0, 1.0, 70.0))
        if rng.random() < 0.7:
            rollups.run()
            check_rollups(embedded)
        if rng.random() < 0.2:
            rollups = Rollups(embedded, clock=clock)  # a new process
    for events in jobs:
        publish(writer, events)
    rollups.run()
    check_rollups(embedded)
    assert rollups.run(full=True) == RolledUp(0, 0, 0, True)


def test_nothing_is_made_anew_without_need(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    rollups = Rollups(embedded, clock=clock)
    assert rollups.run() == RolledUp(0, 0, 0, True)
    writer = Writer(embedded, clock=clock)
    publish(writer, job().events)
    assert rollups.run() == RolledUp(4, 4, 1, False)
    assert rollups.run() == RolledUp(0, 0, 0, False)
    publish(writer, job().progress(3.1 * HOUR, 300).events)
    assert rollups.run() == RolledUp(1, 1, 1, False)
    check_rollups(embedded)


def test_rows_that_are_inserted_twice_count_once(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    publish(Writer(embedded, clock=clock), job().events)
    rollups = Rollups(embedded, clock=clock)
    rollups.run()
    for table in ("segments_log", "attempts_log", "jobs_log", "rollup_jobs", "rollup_hours", "rollup_days"):
        embedded.command(f"INSERT INTO {table} SELECT * FROM {table}")
        check_rollups(embedded)
    assert rollups.run(full=True) == RolledUp(0, 0, 0, True)
    for table in ("rollup_jobs", "rollup_hours", "rollup_days"):
        embedded.command(f"OPTIMIZE TABLE {table} FINAL")
    check_rollups(embedded)


def test_a_job_that_changes_its_team_takes_its_hours_along(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    writer = Writer(embedded, clock=clock)
    story = job()
    publish(writer, [event for event in story.events if event.kind != "job_submitted"])
    rollups = Rollups(embedded, clock=clock)
    rollups.run()
    assert {key[1] for key in held(embedded, "rollup_hours")} == {""}
    clock.now += 7_200
    publish(writer, story.events)
    assert rollups.run().jobs == 4
    assert {key[1:] for key in held(embedded, "rollup_hours")} == {("ads", "m", "c")}
    check_rollups(embedded)


def test_hours_that_a_correction_removes_are_gone(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    writer = Writer(embedded, clock=clock)
    story = job(hours=2)
    publish(writer, story.events, START + 30 * 3_600_000_000)
    rollups = Rollups(embedded, clock=clock)
    assert rollups.run().hours == 31
    publish(writer, story.ended(2.5 * HOUR, "failed").over(2.5 * HOUR).events)
    rollups.run()
    check_rollups(embedded)
    assert len(held(embedded, "rollup_hours")) == 3
    assert len(embedded.query("SELECT * FROM fleet_hourly").rows) == 3
    assert len(embedded.query("SELECT * FROM fleet_daily").rows) == 1


@pytest.mark.parametrize("fault", [before, after])
@pytest.mark.parametrize("at", [4, 5, 8, 10])  # the fills of jobs, of hours, of days
def test_a_run_that_fails_anywhere_is_made_up_for(
    embedded: EmbeddedStore, clock: StoppedClock, at: int, fault: Callable[[Exception], Callable[..., object]]
) -> None:
    publish(Writer(embedded, clock=clock), job("a").events)
    Rollups(embedded, clock=clock).run()
    publish(Writer(embedded, clock=clock), job("a", hours=5).ended(5.5 * HOUR, "failed", cause="hardware").events)
    publish(Writer(embedded, clock=clock), job("b").events)
    faulty = FaultyStore(embedded)
    faulty.plan = [None] * at + [fault(StoreError("away"))]
    rollups = Rollups(faulty, clock=clock)
    try:
        rollups.run()
    except StoreError:
        rollups.run()  # of the same process, or of the next one
        check_rollups(embedded)
        assert Rollups(embedded, clock=clock).run() == RolledUp(0, 0, 0, True)
    check_rollups(embedded)


def test_two_processes_at_once_do_no_harm(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    """One reads, then the other reads more and writes, then the first one writes what is old, with a greater number."""
    writer = Writer(embedded, clock=clock)
    publish(writer, job().events)
    fast = StoppedClock(clock.now + 500)
    slow_store = FaultyStore(embedded)

    def meanwhile(step: Callable[[], object]) -> object:
        publish(writer, job(hours=6).events)
        Rollups(embedded, clock=clock).run()
        embedded.command(
            "INSERT INTO rollup_hours SELECT * REPLACE ('nobody' AS team, source + 1 AS source) FROM rollup_hours"
        )
        return step()

    slow_store.plan = [None] * 9 + [meanwhile]
    slow = Rollups(slow_store, clock=fast)
    slow.run()
    assert not slow_store.plan
    Rollups(embedded, clock=clock).run()
    check_rollups(embedded)


def test_a_wrong_row_of_whatever_number_is_found_by_a_full_run(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    publish(Writer(embedded, clock=clock), job().events)
    rollups = Rollups(embedded, clock=clock)
    rollups.run()
    for table, change in (
        ("rollup_jobs", "concat(job, 'x') AS job"),
        ("rollup_jobs", "made + 10 AS made, source + 1 AS source, [7] AS us"),
        ("rollup_hours", "'wrong' AS model, source + 1 AS source"),
        ("rollup_hours", "made + 10 AS made, source + 1 AS source"),
        ("rollup_days", "'wrong' AS team, source + 1 AS source"),
    ):
        embedded.command(f"INSERT INTO {table} SELECT * REPLACE ({change}) FROM {table}")
    rollups.run(full=True)
    check_rollups(embedded)
    assert rollups.run(full=True) == RolledUp(0, 0, 0, True)


def test_a_rebuild_by_other_rules_takes_the_rollups_along(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    publish(Writer(embedded, clock=clock), job().events)
    Rollups(embedded, clock=clock).run()
    before_ = recount(embedded, 3_600)
    rebuild(embedded, Rules(lateness=None, silent_after=1, lost_after=1), now=START + 10**12, clock=clock)
    assert recount(embedded, 3_600) != before_
    check_rollups(embedded)


def test_what_has_expired_stays_as_it_was_summed_up(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    writer = Writer(embedded, clock=clock)
    publish(writer, job().events)
    rollups = Rollups(embedded, clock=clock)
    rollups.run()
    kept = held(embedded, "rollup_hours")
    try:
        set_retention(embedded, "segments", 30)
        clock.now += 40 * 86_400
        embedded.command("TRUNCATE TABLE segments_log")  # what a merge would do to rows that have expired
        rollups.run(full=True)
        assert held(embedded, "rollup_hours") == kept
        late = Story("late").submitted(40 * 86_400).started(40 * 86_400 + 5).trains(40 * 86_400 + 60)
        publish(writer, late.progress(40 * 86_400 + 160, 5).events)
        assert rollups.run(full=True).jobs == 1
        assert kept.items() <= held(embedded, "rollup_hours").items()
    finally:
        set_retention(embedded, "segments", None)


def test_numbers_of_writes_rise_over_clocks_that_go_back(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    writer = Writer(embedded, clock=clock)
    publish(writer, job().events)
    Rollups(embedded, clock=clock).run()
    publish(writer, job(hours=5).events)
    Rollups(embedded, clock=StoppedClock(clock.now - 10_000)).run()
    check_rollups(embedded)


def test_names_of_jobs_may_hold_anything(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    writer = Writer(embedded, clock=clock)
    for name in ("it's", "back\\slash", 'q"uote', "new\tline", "ümläut", "{job:String}"):
        publish(writer, job(name).events)
    rollups = Rollups(embedded, clock=clock)
    rollups.run()
    check_rollups(embedded)


def test_large_databases_are_done_in_pages(
    embedded: EmbeddedStore, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ettwatch_clickhouse.rollups._PAGE", 5)
    monkeypatch.setattr("ettwatch_clickhouse.rollups._PERIODS", dict.fromkeys(("rollup_hours", "rollup_days"), 2))
    writer = Writer(embedded, clock=clock)
    for i in range(4):
        publish(writer, job(f"it's {i}", hours=i + 1).events)
    rollups = Rollups(embedded, clock=clock)
    assert rollups.run() == RolledUp(sum(i + 2 for i in range(4)), 5, 1, True)
    check_rollups(embedded)


def test_a_job_of_many_months_takes_few_statements_and_the_newest_hours_come_first(
    embedded: EmbeddedStore, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after one event from a machine whose clock stood in another year."""
    publish(Writer(embedded, clock=clock), job(hours=1_500).events)
    told: list[str] = []
    command = embedded.command

    def noted(sql: str) -> None:
        told.append(sql)
        command(sql)

    monkeypatch.setattr(embedded, "command", noted)
    monkeypatch.setattr("ettwatch_clickhouse.rollups._PAGE", 1_000)
    rollups = Rollups(embedded, clock=clock)
    rollups.run()
    hours = [sql for sql in told if "INSERT INTO rollup_hours" in sql]
    newest = START // 3_600_000_000 + 1_499
    assert [str(newest) in sql for sql in hours] == [True, False]
    assert len([sql for sql in told if "INSERT INTO rollup_days" in sql]) <= 2
    check_rollups(embedded)


def test_a_run_that_is_stopped_says_so_by_ending(embedded: EmbeddedStore, clock: StoppedClock) -> None:
    publish(Writer(embedded, clock=clock), job().events)
    rollups = Rollups(embedded, clock=clock)
    rollups.stop()
    assert rollups.run() == RolledUp(0, 0, 0, True)
    assert Rollups(embedded, clock=clock).run().jobs == 4


def test_the_other_one_keeps_them_until_it_falls_silent(embedded: Store, clock: StoppedClock) -> None:
    publish(Writer(embedded, clock=clock), job().events)
    one, other = Rollups(embedded, clock=clock), Rollups(embedded, clock=clock)
    assert not one.kept_by_another(60)
    one.run()
    assert other.kept_by_another(60)
    assert not one.kept_by_another(60)
    clock.now += 50
    assert not other.kept_by_another(60)
