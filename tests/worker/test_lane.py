"""What the clock alone does to jobs, when they are published, and what becomes of those that are over."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ettwatch_core import Pace, Publication, Rules
from ettwatch_faust.lane import Lane
from ettwatch_faust.live import STATUSES, Answer, Policy
from ettwatch_faust.shelf import Head, Shelf, read_head, split_key
from ettwatch_schemas import Event, decode_event
from support.kafka_sim import apply_writes
from support.lanes import Readers

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
T0 = 1_790_002_800 * SECOND  # a whole hour
RULES = Rules()
POLICY = Policy(RULES, Pace(RULES, MINUTE, MINUTE, 30 * DAY))


def always() -> bool:
    return True


def event(kind: str, at: float, job: str = "job", **fields: Any) -> Event:
    """An event; its time in seconds."""
    attempt = {} if kind in ("job_ended", "job_submitted") else {"attempt": 0}
    told = {"v": 1, "id": f"{kind}-{at}", "job": job, "ts": T0 + round(at * SECOND), "kind": kind, **attempt, **fields}
    return decode_event(json.dumps(told))


def step(at: float, job: str = "job") -> Event:
    return event("progress", at, job, position=round(at * 10), step=round(at))


class Desk:
    """A lane with its part of the table, and the reader of what it tells."""

    def __init__(self, policy: Policy = POLICY, part: dict[bytes, bytes] | None = None, generation: int = 1) -> None:
        self.part = {} if part is None else part
        self.lane = Lane(self.part, policy, generation)
        self.readers = Readers()
        self.offset = 0

    def take(self, now: float, *events: Event) -> list[Answer] | None:
        self.offset += 1
        return self.lane.take(events[0].job, events, self.offset - 1, T0 + round(now * SECOND))

    def flush(
        self, now: float, *, behind: bool = False, go_on: Callable[[], bool] = always, stored: bool = True
    ) -> list[Publication]:
        now_us = T0 + round(now * SECOND)
        out = [] if behind else self.lane.tick(now_us, go_on)
        out += self.lane.publish(now_us, behind=behind, go_on=go_on)
        for publication in out:
            self.readers.publish(publication)
        writes = self.lane.writes(now_us)
        if stored:
            apply_writes(self.part, writes)
        return out

    def status(self, job: str = "job") -> str:
        return self.readers.jobs[job].truth().summary.status

    def heads(self) -> set[tuple[str, int, str]]:
        """Job, epoch and status of all that is stored."""
        return {
            (named[0].decode(), named[1], STATUSES[read_head(value).status])
            for key, value in self.part.items()
            if (named := split_key(key))
        }


def running(desk: Desk) -> None:
    desk.take(
        0, event("job_submitted", 0, gpus=8), event("attempt_started", 1), event("training_started", 60, position=0)
    )
    desk.take(90, step(90))


def test_a_job_that_stops_speaking_is_silent_then_lost_then_dropped_then_forgotten() -> None:
    desk = Desk()
    running(desk)
    desk.flush(90)
    seen: list[tuple[str, float]] = []
    now = 90.0
    while desk.lane.jobs.total():
        status = next(status for status, count in desk.lane.jobs.items() if count)
        if not seen or seen[-1][0] != status:
            seen.append((status, now))
        now += 60 if now < 7 * 3600 else 3600
        desk.flush(now)
    assert [status for status, _ in seen] == ["training", "silent", "lost", "expired"]
    silent, lost, dropped, forgotten = (*(at for _, at in seen[1:]), now)
    assert 90 + 600 <= silent <= 90 + 600 + 120
    assert 90 + 6 * 3600 <= lost <= 90 + 6 * 3600 + 120
    assert 30 * 86_400 <= dropped - lost <= 30 * 86_400 + 7200
    assert 30 * 86_400 <= forgotten - dropped <= 30 * 86_400 + 7200
    assert desk.part == {}
    assert desk.status() == "lost"
    assert desk.take(now, step(now)) == [Answer.TAKEN], "a new job of that name"


def test_a_job_that_has_ended_is_kept_for_the_lateness() -> None:
    desk = Desk()
    running(desk)
    desk.take(100, event("attempt_ended", 100, outcome="succeeded"), event("job_ended", 100, outcome="succeeded"))
    desk.flush(100)
    assert desk.status() == "succeeded"
    desk.flush(100 + 6 * 3600 - 1)
    assert desk.take(100 + 6 * 3600 - 1, step(95)) == [Answer.TAKEN], "it may still be corrected"
    late = desk.flush(100 + 6 * 3600)
    assert len(late) == 1
    gone = 100 + 12 * 3600 - 1
    desk.flush(gone - 1)
    assert desk.heads() == {("job", 1, "succeeded")}
    desk.flush(gone)
    assert desk.heads() == {("job", 1, "expired")}
    assert desk.lane.in_memory == 0
    assert desk.take(gone, event("heartbeat", gone), event("heartbeat", gone + 1)) == [Answer.EXPIRED] * 2
    assert desk.flush(gone + 1) == []
    assert desk.status() == "succeeded"


def test_who_takes_over_knows_what_was_dropped() -> None:
    desk = Desk()
    desk.take(0, event("job_ended", 0, outcome="failed"))
    desk.flush(0)
    desk.flush(13 * 3600)
    again = Desk(part=desk.part, generation=2)
    assert again.lane.jobs["expired"] == 1
    again.offset = 1
    assert again.take(13 * 3600, event("heartbeat", 13 * 3600)) == [Answer.EXPIRED]
    again.flush(13 * 3600 + 30 * 86_400 - 1)
    assert again.lane.knows("job")
    again.flush(13 * 3600 + 30 * 86_400)
    assert not again.lane.knows("job")
    assert desk.part == {}


def test_what_counted_before_the_job_was_dropped_is_not_refused_when_it_comes_again() -> None:
    desk = Desk(replace(POLICY, rules=replace(RULES, lateness=SECOND), pace=Pace(Rules(lateness=SECOND), 1, 1, DAY)))
    desk.take(0, event("job_ended", 0, outcome="failed"))
    desk.flush(0)
    desk.flush(10)
    assert desk.lane.jobs["expired"] == 1
    again = Desk(part=desk.part, generation=2)
    assert again.take(20, event("job_ended", 0, outcome="failed")) is None
    assert again.take(20, event("job_ended", 0, outcome="failed")) == [Answer.EXPIRED]


def test_nobody_is_called_silent_while_events_wait_to_be_read() -> None:
    desk = Desk(replace(POLICY, behind_us=0))
    running(desk)
    desk.flush(5 * 3600, behind=True)
    assert desk.status() == "training"
    desk.take(5 * 3600, step(3600))
    desk.flush(5 * 3600, behind=True)
    assert desk.status() == "training"
    assert desk.flush(8 * 3600, behind=True) == [], "the clock is not asked"
    desk.flush(5 * 3600)
    assert desk.status() == "silent"


def test_urgent_things_are_told_at_once_and_progress_at_its_pace() -> None:
    desk = Desk(replace(POLICY, publish_us=15 * SECOND))
    running(desk)
    assert len(desk.flush(100)) == 1
    desk.take(101, step(101))
    assert desk.flush(101) == []
    assert desk.flush(114.9) == []
    assert len(desk.flush(115)) == 1
    desk.take(116, event("heartbeat", 116), event("checkpoint_durable", 116, step=1, position=1))
    assert desk.flush(116) == []
    desk.take(117, event("phase_started", 117, span="s", phase="wasted_training.evaluation"))
    assert len(desk.flush(117)) == 1
    desk.take(200, step(200))
    assert len(desk.flush(200)) == 1


def test_behind_a_job_is_told_now_and_then() -> None:
    desk = Desk(replace(POLICY, behind_us=10 * SECOND))
    desk.take(100, event("attempt_started", 0))
    assert desk.flush(109, behind=True) == []
    assert len(desk.flush(110, behind=True)) == 1
    desk.take(112, event("attempt_ended", 95, outcome="failed"))
    assert desk.flush(121, behind=True) == []
    assert len(desk.flush(122, behind=True)) == 1


def test_a_running_job_is_brought_up_to_date_without_events() -> None:
    desk = Desk()
    running(desk)
    desk.flush(100)
    ends = []
    for now in range(101, 400, 7):
        desk.flush(now)
        ends.append(desk.readers.jobs["job"].truth().summary.t1 // SECOND - T0 // SECOND)
    assert all(now - end < 67 for now, end in zip(range(101, 400, 7), ends, strict=True))
    assert len(set(ends)) == 5


def test_what_there_was_no_time_for_is_told_later() -> None:
    desk = Desk()
    jobs = [f"job-{i}" for i in range(5)]
    for job in jobs:
        desk.take(0, event("attempt_started", 0, job))
    left = iter([True, True, False])
    assert len(desk.flush(1, go_on=lambda: next(left, False))) == 2
    # Who takes over now tells the rest, too.
    other = Desk(part=dict(desk.part), generation=2)
    assert {p.summary.job for p in other.flush(1) if p.summary} >= set(jobs) - desk.readers.jobs.keys()
    assert len(desk.flush(2)) == 3
    assert desk.readers.jobs.keys() == set(jobs)
    left = iter([True, False])
    assert len(desk.flush(100, go_on=lambda: next(left, False))) == 1
    assert len(desk.flush(100)) == 4


def test_a_state_that_is_packed_away_is_unpacked_when_it_is_needed() -> None:
    desk = Desk()
    running(desk)
    assert desk.lane.evict(10**9) == 0, "it was not written yet"
    desk.flush(90)
    weight = desk.lane.weight
    assert weight >= 4
    assert desk.lane.evict(1) == weight
    assert (desk.lane.in_memory, desk.lane.weight) == (0, 0)
    desk.take(91, step(91))
    assert desk.lane.in_memory == 1
    assert desk.lane.evict(10**9) == 0, "it has news"
    desk.flush(120)
    desk.lane.evict(10**9)
    desk.flush(300)
    assert desk.lane.in_memory == 1, "its time had come"
    counted = [
        event("job_submitted", 0, gpus=8),
        event("attempt_started", 1),
        event("training_started", 60, position=0),
    ]
    desk.readers.check("job", [counted, [step(90)], [step(91)]], RULES)


def test_those_that_speak_least_are_packed_away_first() -> None:
    desk = Desk()
    for i in range(4):
        desk.take(i, event("attempt_started", i, f"job-{i}"))
    desk.flush(5)
    for i in (0, 2):
        desk.take(6, event("heartbeat", 6, f"job-{i}"))
    desk.flush(7)
    desk.lane.evict(2)
    writes = set()
    for i in range(4):
        before = desk.lane.in_memory
        desk.take(8, event("heartbeat", 8, f"job-{i}"))
        if desk.lane.in_memory > before:
            writes.add(i)
    assert writes <= {1, 3}
    assert writes


def test_what_stale_owners_left_is_removed() -> None:
    desk = Desk(generation=5)
    desk.take(0, event("attempt_started", 0))
    desk.flush(1)
    stale = Shelf(b"job", old=0)
    state = Shelf(b"job", old=5).load(desk.part, mine=False)
    apply_writes(desk.part, stale.write(state, Head(0, 0, 99, 0, 0, 1), 2, {}))
    assert {epoch for _, epoch, _ in desk.heads()} == {2, 5}
    other = Desk(part=desk.part, generation=6)
    other.offset = 1
    other.flush(1, behind=True)
    assert {epoch for _, epoch, _ in desk.heads()} == {5}
    assert other.take(2, event("heartbeat", 2)) == [Answer.TAKEN]
    other.flush(3)
    assert {epoch for _, epoch, _ in desk.heads()} == {6}


def test_an_owner_of_a_group_that_began_anew_writes_above_what_it_found() -> None:
    desk = Desk(generation=700)
    desk.take(0, event("attempt_started", 0))
    desk.flush(1)
    other = Desk(part=desk.part, generation=1)
    other.offset = 1
    other.take(2, event("heartbeat", 2), event("heartbeat", 2.5))
    other.take(2, event("attempt_started", 0, "another"))
    other.flush(3)
    assert {(job, epoch) for job, epoch, _ in desk.heads()} == {("job", 701), ("another", 701)}


def test_what_became_final_is_told_before_the_state_without_it_is_stored() -> None:
    """A job that is behind, and published rarely; the worker dies after each flush."""
    policy = replace(POLICY, rules=replace(RULES, lateness=HOUR), behind_us=DAY)
    told = [event("attempt_started", 0), event("training_started", 10, position=0)]
    told += [step(at) for at in range(60, 4 * 3600, 60)]
    part: dict[bytes, bytes] = {}
    readers = Readers()
    for offset, each in enumerate(told):
        desk = Desk(policy, part, generation=offset + 1)
        desk.readers, desk.offset = readers, offset
        assert desk.take(4 * 3600, each) == [Answer.TAKEN]
        desk.flush(4 * 3600, behind=True, go_on=lambda: False)
    desk.flush(5 * 3600)
    readers.check("job", [[each] for each in told], policy.rules)


def test_what_an_owner_before_told_of_the_past_is_set_right() -> None:
    """It looked far ahead and died before its commit; meanwhile the job turned out to have ended early."""
    policy = replace(POLICY, behind_us=0)
    told = [event("attempt_started", 0), event("training_started", 10, position=0), step(60)]
    first = Desk(policy)
    for each in told:
        first.take(60, each)
    first.flush(5 * 3600, stored=False)
    told.append(event("job_ended", 3700, outcome="failed"))
    again = Desk(policy, generation=2)
    again.readers = first.readers
    for each in told:
        again.take(5 * 3600, each)
        again.flush(5 * 3600, behind=True)
    again.flush(5 * 3600 + 1)
    assert again.status() == "failed"
    again.readers.check("job", [[each] for each in told], RULES)


def disturbed_by_a_stale_owner() -> tuple[Desk, list[Event]]:
    """Of a job that ended: the desk that took it over, after what an owner before told late; and its events."""
    told = [event("attempt_started", 0), event("training_started", 10, position=0), step(60)]
    stale = Desk()
    for each in told:
        stale.take(60, each)
    late = stale.flush(5 * 3600, stored=False)  # on its way while the process stands still
    told.append(event("job_ended", 120, outcome="failed"))
    desk = Desk(generation=2)
    for each in told:
        desk.take(120, each)
    desk.flush(120)
    for publication in late:
        desk.readers.publish(publication)
    return desk, told


def test_the_last_word_on_a_job_corrects_what_a_stale_owner_told_late() -> None:
    desk, told = disturbed_by_a_stale_owner()
    desk.flush(120 + 6 * 3600)
    assert desk.heads() == {("job", 2, "expired")}
    desk.readers.check("job", [[each] for each in told], RULES)


def test_what_a_stale_owner_told_late_is_set_right_soon_after_the_take_over() -> None:
    desk, told = disturbed_by_a_stale_owner()
    assert desk.flush(179) == []
    assert len(desk.flush(180)) == 1, "a minute after the take-over"
    desk.readers.check("job", [[each] for each in told], RULES)
    assert desk.flush(300) == [], "once is enough"


def test_late_events_and_those_told_before() -> None:
    desk = Desk()
    running(desk)
    assert desk.take(7 * 3600, step(7 * 3600), step(100), step(7 * 3600), step(3700)) == [
        Answer.TAKEN,
        Answer.LATE,
        Answer.DUPLICATE,
        Answer.TAKEN,
    ]


def test_records_that_the_state_holds_are_passed_over() -> None:
    desk = Desk()
    running(desk)
    desk.flush(90)
    again = Desk(part=desk.part, generation=2)
    assert again.take(90, event("attempt_started", 1)) is None
    assert again.take(90, step(90)) is None
    assert again.lane.in_memory == 0, "it is not unpacked for that"
    assert again.take(91, step(91)) == [Answer.TAKEN]


def test_without_a_lateness_a_job_that_has_ended_stays() -> None:
    rules = Rules(lateness=None)
    desk = Desk(replace(POLICY, rules=rules, pace=Pace(rules, MINUTE, MINUTE, 30 * DAY)))
    desk.take(0, event("job_ended", 0, outcome="failed"))
    desk.flush(0)
    desk.flush(1000 * 86_400)
    assert desk.lane.jobs["failed"] == 1
    assert desk.take(1000 * 86_400, event("attempt_started", 0)) == [Answer.TAKEN]


@pytest.mark.parametrize("status", STATUSES)
def test_statuses_keep_their_numbers(status: str) -> None:
    assert (
        STATUSES.index(status)
        == {
            "new": 0,
            "pending": 1,
            "starting": 2,
            "training": 3,
            "recovering": 4,
            "silent": 5,
            "succeeded": 6,
            "failed": 7,
            "cancelled": 8,
            "lost": 9,
            "expired": 10,
        }[status]
    )
