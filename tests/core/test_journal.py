"""A base and the tails after it are the state, however the events were split, and so is a base of an older form."""

import json
import zlib
from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_core import (
    JobState,
    Rules,
    StateError,
    Verdict,
    apply,
    dump,
    grow,
    load,
    settle,
    snapshot,
    summarize,
    tail,
)
from ettwatch_schemas import Event, JobSubmitted, Progress
from ettwatch_sim import Delivery, Shape, random_jobs
from support.jobs import jobs, mangle
from support.long import a_long_job

SECOND = 1_000_000
NO_LIMIT = Rules(lateness=None)


class Changelog:
    """What a worker keeps of one job: a base, and tails that reach back to it or to one of the tails before."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.base = dump(JobState("job"))
        self.tails: list[bytes] = []
        self.reach = [0]
        """Records accepted since the base, and since each tail."""

    def keep(self, state: JobState, accepted: int, *, whole: bool) -> None:
        if whole:
            self.base, self.tails, self.reach = dump(state), [], [0]
            return
        self.reach = [count + accepted for count in self.reach]
        more = self.rng.choice((0, 0, 0, 3, 1000))
        self.tails.append(tail(state, self.rng.choice(self.reach) + more))
        self.reach.append(0)

    def recovered(self) -> JobState:
        state = load(self.base)
        for i, data in enumerate(self.tails):
            grow(state, data)
            if self.rng.random() < 0.2:
                grow(state, self.rng.choice(self.tails[: i + 1]))
        return state


def follow(rng: Random, told: Iterable[Event], rules: Rules, *, every: int = 0) -> JobState:
    """Take events in flush by flush; after each, what was kept is the state. At times the worker starts anew."""
    state, log = JobState("job"), Changelog(rng)
    accepted, whole, left = 0, False, rng.randint(0, 9)
    for event in told:
        verdict = apply(state, event, rules)
        accepted += verdict is Verdict.ACCEPTED
        whole |= verdict is Verdict.CONFLICT
        if rng.random() < 0.5:
            whole |= settle(state, rules, every=every) is not None
        left -= 1
        if left < 0:
            log.keep(state, accepted, whole=whole or rng.random() < 0.05)
            accepted, whole, left = 0, False, rng.choice((0, 1, 3, rng.randint(0, 30)))
            again = log.recovered()
            assert dump(again) == dump(state)
            if rng.random() < 0.2:
                snapshot(again, rules)
                state = again
    return state


@given(jobs(), st.integers(0, 2**32), st.sampled_from([None, 5 * SECOND, 60 * SECOND, 400 * SECOND, 3600 * SECOND]))
def test_a_base_and_its_tails_are_the_state(events: list[Event], seed: int, lateness: int | None) -> None:
    rng = Random(seed)
    told = mangle(rng, events, lateness_us=lateness or 3600 * SECOND)
    for _ in range(rng.choice((0, 0, 1, 2))):  # another content under an id that was told
        other = rng.choice(told)
        told.insert(rng.randrange(len(told)), other.model_copy(update={"ts": other.ts + rng.randint(1, SECOND)}))
    follow(rng, told, Rules(lateness=lateness), every=rng.choice((0, 100 * SECOND)))


def test_the_jobs_of_a_fleet_are_kept_too() -> None:
    arrived: dict[str, list[Event]] = {}
    for event in random_jobs(11, 10, shape=Shape(loop_s=3600, odd=0.5), delivery=Delivery(late_s=300)):
        arrived.setdefault(event.job, []).append(event)
    for job, told in arrived.items():
        follow(Random(job), told, Rules(lateness=900 * SECOND))


def test_a_long_job_is_kept_while_it_is_settled() -> None:
    follow(Random(1), a_long_job(0.25, Random(8)), Rules(lateness=1800 * SECOND), every=600 * SECOND)


def a_state(count: int = 30) -> tuple[JobState, list[Event]]:
    events = a_long_job(0.1, Random(2))[:count]
    state = JobState("job")
    for event in events:
        apply(state, event, NO_LIMIT)
    return state, events


def test_a_tail_of_twenty_after_five_and_five_and_ten() -> None:
    state, events = a_state()
    base, tails = dump(state), []
    for i, event in enumerate(a_long_job(0.1, Random(2))[30:70], start=1):
        apply(state, event, NO_LIMIT)
        if i in (5, 10):
            tails.append(tail(state, 5))
        if i == 20:
            tails += [tail(state, 10), tail(state, 20)]
    at_twenty = tails[-1]
    tails += [tail(state, 20), tail(state, 40), tail(state, 10**6)]
    again = load(base)
    for data in tails:
        grow(again, data)
    assert dump(again) == dump(state)
    assert [tail(again, count) for count in range(41)] == [tail(state, count) for count in range(41)]
    before = dump(again)
    for data in tails:  # what is older than the state adds nothing
        grow(again, data)
    assert dump(again) == before
    grow(again := load(base), at_twenty)
    assert again.accepted == len(events) + 20
    assert all(apply(again, event, NO_LIMIT) is Verdict.DUPLICATE for event in events)


def test_a_state_grown_from_nothing_knows_its_events() -> None:
    state, events = a_state()
    fresh = JobState("job")
    for event in events[:10]:
        apply(fresh, event, NO_LIMIT)
    grow(fresh, tail(state, 25))
    assert dump(fresh) == dump(state)
    assert [apply(fresh, event, NO_LIMIT) for event in events] == [Verdict.DUPLICATE] * len(events)


def test_what_was_settled_does_not_come_back() -> None:
    rules, state = Rules(lateness=600 * SECOND), JobState("job")
    for event in a_long_job(0.1, Random(2)):
        apply(state, event, rules)
    old = tail(state, 500)
    assert settle(state, rules, every=0) is None
    apply(state, a_long_job(0.1, Random(2))[-1].model_copy(update={"id": "new", "ts": state.newest + 10**9}), rules)
    just_before = tail(state, 500)
    assert settle(state, rules, every=0) is not None
    before = dump(state)
    grow(state, old)
    grow(state, just_before)
    assert dump(state) == before


def test_growing_is_told_to_the_next_snapshot() -> None:
    state, _ = a_state(300)
    ahead, _ = a_state(400)
    snapshot(state, NO_LIMIT)
    snapshot(state, NO_LIMIT)
    grow(state, tail(ahead, 100))
    assert snapshot(state, NO_LIMIT) == snapshot(ahead, NO_LIMIT)


def test_a_tail_does_not_change_the_state() -> None:
    state, _ = a_state()
    before, records = dump(state), list(state.records.items())
    tail(state, 7)
    assert dump(state) == before
    assert list(state.records.items()) == records


def test_a_tail_of_no_records_holds_when_to_settle() -> None:
    rules = Rules(lateness=600 * SECOND)
    state, _ = a_state()
    base = dump(state)
    settle(state, rules)
    grow(again := load(base), tail(state, 0))
    assert again.settle_from == state.settle_from > 0
    assert dump(again) == dump(state)


def test_missing_tails_are_told() -> None:
    state, _ = a_state()
    before = load(dump(state))
    for event in a_long_job(0.1, Random(2))[30:40]:
        apply(state, event, NO_LIMIT)
    kept = dump(before)
    with pytest.raises(StateError, match=r"3 events of job job missing .*30 accepted.*last 7 of 40"):
        grow(before, tail(state, 7))
    assert dump(before) == kept


def test_a_conflict_is_not_passed_over() -> None:
    state, events = a_state()
    again = load(dump(state))
    assert apply(state, events[9].model_copy(update={"ts": events[9].ts - 1}), NO_LIMIT) is Verdict.CONFLICT
    with pytest.raises(StateError, match="1 event "):
        grow(again, tail(state, 0))


def test_flags_are_kept() -> None:
    state, _ = a_state()
    again = load(dump(state))
    again.flags.add("one")
    state.flags |= {"two", "three"}
    grow(again, tail(state, 0))
    assert again.flags == {"one", "two", "three"}


def test_tails_are_small() -> None:
    state, _ = a_state(0)
    for event in a_long_job(0.4, Random(2)):
        apply(state, event, Rules())
        settle(state, Rules())
        if isinstance(event, Progress):
            size = len(tail(state, 1))
    assert size < 110
    assert len(tail(state, 3)) < 256
    assert len(tail(state, 200)) < 40 * 200


def test_text_of_any_script_is_kept() -> None:
    event = JobSubmitted(
        v=1,
        kind="job_submitted",
        id="ä",
        job="job",
        ts=1_790_000_000_000_000,
        team="вега",
        model='"\\\n',
        labels={"名": "🦜", "a": ""},
    )
    for count in (1, 12):
        state, again = JobState("job"), JobState("job")
        for i in range(count):
            apply(state, event.model_copy(update={"id": f"ä{i}"}), NO_LIMIT)
        grow(again, tail(state, count))
        assert dump(again) == dump(state)


def broken_rows() -> list[object]:
    good = json.loads(tail(a_state()[0], 1))
    row = good[5]
    bodies: list[object] = [
        {},
        {"format": 1},
        [],
        None,
        good[:4],
        [1, "1", *good[2:]],
        [*good[:4], None],
        [*good[:4], 3],
        [*good[:5], 7],
        [*good[:5], []],
        [*good[:5], [str(row[0]), *row[1:]]],
        [*good[:5], [row[0], 99, *row[2:]]],
        [*good[:5], [row[0], [], *row[2:]]],
        [*good[:5], [*row[:2], "soon", *row[3:]]],
        [*good[:5], row[:-1]],
        [*good[:5], [*row, 0]],
    ]
    return bodies


@pytest.mark.parametrize("body", broken_rows(), ids=str)
def test_broken_tails_are_refused_and_leave_no_trace(body: object) -> None:
    state, _ = a_state(10)
    before = dump(state)
    text = json.dumps(body).encode()
    for data in (text, zlib.compress(text)):
        with pytest.raises(StateError, match="not a tail of a job state"):
            grow(state, data)
    assert dump(state) == before


@pytest.mark.parametrize("data", [b"", b"junk", b"[", b"[1,2", b"\xff", b"[\xff]", b"x\x9c\x03\x00", b"[" * 100_000])
def test_bytes_that_are_no_tail_are_refused(data: bytes) -> None:
    with pytest.raises(StateError, match="not a tail of a job state"):
        grow(JobState("job"), data)


def test_a_base_is_no_tail_and_a_tail_no_base() -> None:
    state, _ = a_state()
    with pytest.raises(StateError):
        grow(JobState("job"), dump(state))
    for count in (1, 30):
        with pytest.raises(StateError):
            load(tail(state, count))


def test_a_tail_of_another_form_is_refused() -> None:
    with pytest.raises(StateError, match="format 99, this version reads 1"):
        grow(JobState("job"), b'[99,{"whatever":1}]')


@given(jobs(), st.integers(0, 2**32))
def test_a_cut_or_altered_tail_never_raises_anything_else(events: list[Event], seed: int) -> None:
    rng, state = Random(seed), JobState("job")
    for event in events:
        apply(state, event, NO_LIMIT)
    data = bytearray(tail(state, rng.choice((1, 2, 100))))
    for _ in range(20):
        hurt = data[: rng.randrange(len(data))] if rng.random() < 0.3 else data.copy()
        for _ in range(rng.randint(0, 3)):
            if hurt:
                hurt[rng.randrange(len(hurt))] = rng.randrange(256)
        try:
            grow(JobState("job"), bytes(hurt))
        except StateError:
            continue


STORED = [
    json.loads(line.rstrip(",")) for line in Path(__file__).with_name("states_v1.json").read_text().split("\n")[1:-2]
]
"""States of form 1 as the version that made them wrote them, and what it read from them: settled, empty, small jobs
with every kind of event, a conflict."""


def as_json(value: object) -> Any:
    return json.loads(json.dumps(value))


def plainly(carry: Any) -> Any:
    """What is stored of the settled part, but for what form 2 stores in another way."""
    if isinstance(carry, JobState):
        stream = zlib.decompressobj()
        carry = json.loads(stream.decompress(dump(carry)).partition(b"\n")[0])["carry"]
    return carry and {name: value for name, value in carry.items() if name not in ("spent", "unresolved")}


@pytest.mark.parametrize("stored", STORED, ids=range(len(STORED)))
def test_states_of_form_1_are_read(stored: dict[str, Any]) -> None:
    state = load(b64decode(stored["state"]))
    for again in (state, load(dump(state))):
        assert as_json(sorted([key, *record] for key, record in again.records.items())) == stored["records"]
        assert plainly(again) == plainly(stored["carry"])
        if stored["summary"] is not None:
            assert summarize(again, NO_LIMIT).model_dump(mode="json") == stored["summary"]
        assert dump(again) == dump(state)
        assert again.carry is None or (state.carry and again.carry.spent == state.carry.spent)
    assert len(dump(state)) < len(b64decode(stored["state"])) + 100


def test_a_deep_state_is_small() -> None:
    state, rules = JobState("job"), Rules()
    for event in a_long_job(0.55, Random(3)):
        apply(state, event, rules)
        settle(state, rules)
    assert state.carry is not None
    assert len(dump(state)) < 16 * (len(state.records) + len(state.carry.spent))


def test_what_was_settled_is_read_from_form_1() -> None:
    state = load(b64decode(STORED[0]["state"]))
    told = STORED[0]["carry"]
    assert state.carry is not None
    assert state.carry.spent[0][:2] == (told["spent"][0][0], told["spent"][1][0])
    assert [row[2] for row in state.carry.spent] == told["spent"][2]
    assert state.carry.spent[-1][:2] == (sum(told["spent"][0]), sum(told["spent"][1]))
    assert [u.spent for u in state.carry.unresolved] == [[(0, 1000, 5_000_000, 0), (1000, 2500, 6_000_001, 0)], []]
    assert [u.summary.model_dump(mode="json") for u in state.carry.unresolved] == [u[0] for u in told["unresolved"]]


numbers = st.one_of(
    st.integers(0, 5), st.integers(0, 2**15), st.integers(0, 2**31), st.integers(0, 2**63), st.integers(0, 2**70)
)


@given(
    st.lists(st.tuples(numbers, st.none() | numbers, st.sampled_from([None, 0, 7])), max_size=30),
    st.integers(-(2**40), 2**40),
)
def test_progress_of_any_size_is_kept(rows: list[tuple[int, int | None, int | None]], far: int) -> None:
    state = JobState("job")
    for i, (position, step, wait) in enumerate(rows):
        state.records[i] = (0, 2**60 + far * i, 0, i % 3, position, step, wait)
    again = load(dump(state))
    assert again.records == state.records
    assert dump(again) == dump(state)


@given(jobs(), st.integers(0, 2**32))
def test_cut_or_altered_states_are_refused(events: list[Event], seed: int) -> None:
    rng, state = Random(seed), JobState("job")
    for event in events:
        apply(state, event, NO_LIMIT)
    data = dump(state)
    compressed = len(data) - 8 * len(state.records)
    for _ in range(10):
        at = rng.randrange(compressed)
        other = bytes([rng.randrange(256)])
        if rng.random() < 0.5:
            hurt = data[: rng.randrange(len(data))]
        elif other != data[at : at + 1]:
            hurt = data[:at] + other + data[at + 1 :]
        else:
            continue
        with pytest.raises(StateError):
            load(hurt)


@pytest.mark.parametrize(
    "change",
    [
        {"carry": {}},
        {"progress": [["i", 3, 0, 0]] * 6},
        {"progress": [["=", 3, 0]] * 6},
        {"progress": [["=", 3]]},
        {"progress": [[]]},
        {"progress": [["k", 0, 0, 0]]},
        {"progress": None},
        {"others": [[0, 1]]},
        {"others": [7]},
        {"flags": None},
        {"format": 1},
        {"format": 1, "ids": ["AAAA", ""]},
    ],
    ids=str,
)
def test_sound_json_that_is_no_state_is_refused(change: dict[str, object]) -> None:
    body = json.loads(zlib.decompress(dump(JobState("job"))))
    assert load(zlib.compress(json.dumps(body).encode())).job == "job"
    with pytest.raises(StateError, match="not a stored job state"):
        load(zlib.compress(json.dumps({**body, **change}).encode()))


def test_a_state_lacks_nothing() -> None:
    body = json.loads(zlib.decompress(dump(JobState("job"))))
    for name in body:
        with pytest.raises(StateError, match="not a stored job state"):
            load(zlib.compress(json.dumps({key: value for key, value in body.items() if key != name}).encode()))
