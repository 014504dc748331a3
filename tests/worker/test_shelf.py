"""What lies in the table is the state, however it was written, cut off, taken over or disturbed."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_core import JobState, Rules, StateError, Verdict, apply, dump, settle
from ettwatch_faust.shelf import SLOTS, Head, Shelf, Write, read_head, split_key
from ettwatch_schemas import Event, Heartbeat
from support.jobs import jobs, mangle
from support.kafka_sim import apply_writes

SECOND = 1_000_000
JOB = b"job"
MOST = 2 * SLOTS + 1
"""A base and two kinds of notes."""


def newest(part: dict[bytes, bytes]) -> Head | None:
    """What stands in the latest record of the latest epoch, as one who takes over finds it."""
    heads = [(read_head(value).epoch, read_head(value).number, read_head(value)) for value in part.values()]
    return max(heads)[2] if heads else None


class Owner:
    """A worker that owns the job: has its own copy of the table, and writes to a changelog."""

    def __init__(self, log: dict[bytes, bytes], generation: int) -> None:
        self.log = log
        self.part = dict(log)
        head = newest(self.part)
        self.epoch = max(generation, 0 if head is None else head.epoch + 1)
        self.shelf = Shelf(JOB, old=0 if head is None else head.epoch)
        self.state = JobState("job") if head is None else self.shelf.load(self.part, mine=False)

    def take(self, event: Event, rules: Rules) -> None:
        verdict = apply(self.state, event, rules)
        if verdict is Verdict.ACCEPTED:
            self.shelf.accepted()
        elif verdict is Verdict.CONFLICT:
            self.shelf.rewritten()

    def settle(self, rules: Rules, every: int) -> None:
        if settle(self.state, rules, every=every) is not None:
            self.shelf.rewritten()

    def writes(self) -> list[Write]:
        return self.shelf.write(self.state, Head(0, 0, 0, 0, 0, 1), self.epoch, self.part)

    def flush(self) -> None:
        writes = self.writes()
        apply_writes(self.log, writes)
        apply_writes(self.part, writes)

    def read_again(self) -> None:
        """Let go of the state, and read it back."""
        assert self.shelf.epoch
        self.shelf = Shelf(JOB, old=self.shelf.epoch)
        self.state = self.shelf.load(self.part, mine=True)


def as_found(log: dict[bytes, bytes]) -> bytes:
    """The state that the next owner would find."""
    return dump(Owner(log, 0).state)


def with_conflicts(rng: Random, told: list[Event]) -> list[Event]:
    for _ in range(rng.choice((0, 0, 1, 3))):
        other = rng.choice(told)
        told.insert(rng.randrange(len(told)), other.model_copy(update={"ts": other.ts + rng.randint(1, SECOND)}))
    return told


@given(jobs(), st.integers(0, 2**32), st.sampled_from([None, 5 * SECOND, 400 * SECOND]))
def test_what_was_written_is_read_back(events: list[Event], seed: int, lateness: int | None) -> None:
    rng = Random(seed)
    rules = Rules(lateness=lateness)
    told = with_conflicts(rng, mangle(rng, events, lateness_us=lateness or 3600 * SECOND))
    log: dict[bytes, bytes] = {}
    owner = Owner(log, rng.randint(1, 3))
    every = rng.choice((0, 100 * SECOND))
    for event in told:
        owner.take(event, rules)
        if rng.random() < 0.2:
            owner.settle(rules, every)
        for _ in range(rng.choice((0, 1, 1, 1, 2))):  # at times more than once without news
            owner.flush()
            assert as_found(log) == dump(owner.state)
        if owner.shelf.epoch and not owner.shelf.fresh and not owner.shelf.whole:
            if rng.random() < 0.1:
                owner.read_again()
            elif rng.random() < 0.05:
                owner = Owner(log, rng.randint(1, 9))


def beats(count: int, start: int = 0) -> list[Event]:
    first = 1_790_000_000 * SECOND
    return [
        Heartbeat(v=1, kind="heartbeat", id=f"beat-{i}", job="job", ts=first + i * SECOND, attempt=0)
        for i in range(start, start + count)
    ]


@pytest.mark.parametrize("reads", [0.0, 0.05])
def test_however_often_it_is_written(reads: float) -> None:
    """More than two rounds of all slots, with one, two or no new events each time."""
    rng, log = Random(3), dict[bytes, bytes]()
    owner, rules = Owner(log, 7), Rules(lateness=None)
    told = iter(beats(1_500))
    bases = wides = 0
    for _ in range(2 * SLOTS * SLOTS + 50):
        for _ in range(rng.choice((0, 1, 1, 2))):
            owner.take(next(told), rules)
        writes = owner.writes()
        apply_writes(log, writes)
        apply_writes(owner.part, writes)
        ((key, _),) = writes
        bases += key[-2:-1] == b"b"
        wides += key[-2:-1] == b"w"
        assert as_found(log) == dump(owner.state)
        assert len(log) <= MOST
        if rng.random() < reads:
            owner.read_again()
    assert 2 <= bases <= 4
    assert wides >= 2 * (SLOTS - 2)


def test_an_event_is_written_about_three_times() -> None:
    log: dict[bytes, bytes] = {}
    owner, rules = Owner(log, 7), Rules(lateness=None)
    small = 0
    for event in beats(1_000):
        owner.take(event, rules)
        writes = owner.writes()
        apply_writes(log, writes)
        apply_writes(owner.part, writes)
        small += sum(len(value or b"") for key, value in writes if key[-2:-1] != b"b")
    assert small / 1_000 < 200


@given(jobs(), st.integers(0, 2**32))
def test_a_write_that_was_cut_off_counts_whole_or_not(events: list[Event], seed: int) -> None:
    rng, rules = Random(seed), Rules(lateness=400 * SECOND)
    log: dict[bytes, bytes] = {}
    owner = Owner(log, 1)
    for event in mangle(rng, events, lateness_us=400 * SECOND):
        owner.take(event, rules)
        if rng.random() < 0.1:
            owner.settle(rules, 0)
        if rng.random() < 0.5:
            continue
        before = as_found(log)
        writes = owner.writes()
        for count in range(len(writes) + 1):
            cut = dict(log)
            apply_writes(cut, writes[:count])
            assert as_found(cut) == (dump(owner.state) if count else before)
        apply_writes(log, writes)
        apply_writes(owner.part, writes)
        if rng.random() < 0.15:
            # The next owner begins where some of its first write got through; a restart may cut it again and again.
            owner = Owner(log, 1)
            apply_writes(log, owner.writes()[: rng.randint(0, 3)])
            owner = Owner(log, 1)


@given(jobs(), st.integers(0, 2**32))
def test_what_a_stale_owner_writes_changes_nothing(events: list[Event], seed: int) -> None:
    rng, rules = Random(seed), Rules(lateness=None)
    told = mangle(rng, events, lateness_us=400 * SECOND)
    log: dict[bytes, bytes] = {}
    generation = 1
    owner = Owner(log, generation)
    owner.take(told[0], rules)
    owner.flush()
    stale: list[Owner] = []
    for event in told[1:]:
        owner.take(event, rules)
        owner.flush()
        for other in stale:
            if rng.random() < 0.5:
                other.take(rng.choice(told), rules)
            if rng.random() < 0.5:
                other.settle(Rules(lateness=SECOND), 0)
            if rng.random() < 0.8:
                other.flush()
            elif rng.random() < 0.2:
                apply_writes(log, other.shelf.close(Head(0, 0, 0, 0, 0, 10), other.epoch, other.part))
            elif rng.random() < 0.1:
                apply_writes(log, other.shelf.forget(other.part))
        assert as_found(log) == dump(owner.state)
        if rng.random() < 0.1:
            stale.append(owner)
            generation += 1
            owner = Owner(log, generation)
            owner.flush()
            assert as_found(log) == dump(owner.state)
    epochs = [read_head(value).epoch for value in log.values()]
    assert all(epochs.count(epoch) <= MOST + 1 for epoch in epochs)


def closed(log: dict[bytes, bytes], owner: Owner) -> list[Write]:
    return owner.shelf.close(Head(0, 0, 77, 88, 99, 10), owner.epoch, owner.part)


@pytest.mark.parametrize("taken_over", [False, True], ids=["its-own", "found"])
def test_closing_leaves_a_mark_and_forgetting_nothing(taken_over: bool) -> None:
    log: dict[bytes, bytes] = {}
    owner = Owner(log, 5)
    for event in beats(60):
        owner.take(event, Rules())
        owner.flush()
    assert len(log) > SLOTS
    if taken_over:
        owner = Owner(log, 6)
    writes = closed(log, owner)
    for count in range(1, len(writes) + 1):
        cut = dict(log)
        apply_writes(cut, writes[:count])
        head = newest(cut)
        assert head is not None
        assert (head.offset, head.due, head.arrived, head.status) == (77, 88, 99, 10)
    apply_writes(log, writes)
    ((key, value),) = log.items()
    assert split_key(key) == (JOB, owner.epoch, b"x\0")
    assert read_head(value).epoch == owner.epoch == (6 if taken_over else 5)
    apply_writes(log, Shelf(JOB, old=owner.epoch).forget(log))
    assert log == {}


def test_forgetting_a_job_that_was_closed_half_leaves_nothing() -> None:
    log: dict[bytes, bytes] = {}
    owner = Owner(log, 5)
    for event in beats(40):
        owner.take(event, Rules())
        owner.flush()
    apply_writes(log, closed(log, owner)[:4])
    assert len(log) > 1
    apply_writes(log, Shelf(JOB, old=5).forget(log))
    assert log == {}


def test_the_epoch_is_above_the_one_that_was_found_when_generations_begin_anew() -> None:
    log: dict[bytes, bytes] = {}
    owner = Owner(log, 900)
    owner.take(beats(1)[0], Rules())
    owner.flush()
    again = Shelf(JOB, old=900)
    state = again.load(log, mine=False)
    apply_writes(log, again.write(state, Head(0, 0, 0, 0, 0, 1), 3, log))
    assert {split_key(key) for key in log} == {(JOB, 901, b"b\0")}


def test_a_base_that_is_missing_is_told() -> None:
    log: dict[bytes, bytes] = {}
    owner = Owner(log, 1)
    for event in beats(3):
        owner.take(event, Rules())
        owner.flush()
    del log[next(key for key in log if key[-2:] == b"b\0")]
    with pytest.raises(StateError, match="the state of job 'job' is not whole: its base is missing"):
        Shelf(JOB, old=1).load(log, mine=False)


def test_a_note_that_is_missing_is_told() -> None:
    log: dict[bytes, bytes] = {}
    owner = Owner(log, 1)
    for event in beats(5):
        owner.take(event, Rules())
        owner.flush()
    del log[sorted(key for key in log if key[-2:-1] == b"n")[1]]
    with pytest.raises(StateError, match="1 event of job job missing"):
        Shelf(JOB, old=1).load(log, mine=False)


def test_heads() -> None:
    head = Head(2**63, 2**31, 2**62, 2**61, 2**60, 10)
    assert read_head(head.pack() + b"state") == head
    with pytest.raises(StateError, match="too short; was the changelog written by ettwatch"):
        read_head(head.pack()[:-1])
    with pytest.raises(StateError, match="has form 2, this version reads 1: use the version that wrote it"):
        read_head(b"\2" + head.pack()[1:])


@pytest.mark.parametrize("job", ["job", "ü", "a\0b", "\0", "n\0\0\0\0\0\0\0\0\0\0\0", "x" * 512])
def test_keys_are_read_back_for_any_job(job: str) -> None:
    shelf = Shelf(job.encode())
    state = JobState(job)
    ((key, _),) = shelf.write(state, Head(0, 0, 0, 0, 0, 0), 1 << 40, {})
    assert split_key(key) == (job.encode(), 1 << 40, b"b\0")


@pytest.mark.parametrize("key", [b"", b"job", b"\0" + bytes(10), b"job\1" + bytes(10)])
def test_other_keys_are_none_of_a_job(key: bytes) -> None:
    assert split_key(key) is None
