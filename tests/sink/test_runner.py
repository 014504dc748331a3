"""The sink on a source and a store that do what the test says."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ettwatch_app.sink.batch import Place, Record
from ettwatch_app.sink.letters import LettersFailed
from ettwatch_app.sink.runner import Sink
from ettwatch_app.sink.settings import Limits
from ettwatch_app.sink.writing import BatchWriter
from ettwatch_clickhouse import StoreError, StoreUnavailable, Table
from ettwatch_clickhouse.metrics import SinkMetrics
from ettwatch_schemas import DeadLetter, encode_event
from support.spooled import until
from support.story import Story

LIMITS = Limits(rows=20, seconds=0.05, poll_s=0.01, hand_over_s=0.3, stop_s=0.5, first_pause_s=0.01, most_pause_s=0.02)
STORY = Story("j").submitted()
LINE = encode_event(STORY.events[0])
HERE, THERE = Place("ett.accepted", 0), Place("ett.accepted", 1)


class Source:
    """Gives what the test put there."""

    def __init__(self) -> None:
        self.trouble: str | None = None
        self.waiting: list[Record] = []
        self.paused: list[bool] = []
        self.commits: list[dict[Place, int]] = []
        self.refuses: Exception | None = None
        self.read_next: dict[Place, int] = {HERE: 0}
        self.owner: Sink
        self.turns = 0
        self.at_turn: Callable[[int], None] = lambda turn: None

    def read(self, limits: Limits) -> list[Record]:
        self.turns += 1
        self.at_turn(self.turns)
        if self.paused and self.paused[-1]:
            time.sleep(0.001)
            return []
        some, self.waiting = self.waiting[:5], self.waiting[5:]
        for record in some:
            self.read_next[record.place] = record.offset + 1
        if not some:
            time.sleep(0.002)
        return some

    def pause(self, pause: bool) -> None:
        self.paused.append(pause)

    def commit(self, offsets: Mapping[Place, int]) -> None:
        if self.refuses is None:
            self.commits.append(dict(offsets))
        self.owner.committed(offsets, self.refuses)

    def commit_now(self, offsets: Mapping[Place, int], seconds: float) -> None:
        self.commit(offsets)

    def position(self, place: Place) -> int | None:
        return self.read_next[place]

    def end(self, place: Place) -> int | None:
        return self.read_next[place]

    def places(self) -> list[Place]:
        return list(self.read_next)


class Store:
    """Keeps what is inserted, unless it is told to fail."""

    def __init__(self) -> None:
        self.inserts: list[tuple[str, int, str | None]] = []
        self.fails: list[StoreError | None] = []
        self.gate = threading.Event()
        self.gate.set()
        self.calls = 0

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, token: str | None = None
    ) -> None:
        self.calls += 1
        assert self.gate.wait(60)
        fails = self.fails  # the test may put another list in its place
        error = fails.pop(0) if fails else None
        if error is not None:
            raise error
        self.inserts.append((table, len(rows), token))

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> Table:
        return Table([], [], [])

    def command(self, sql: str) -> None: ...
    def close(self) -> None: ...


class Letters:
    def __init__(self) -> None:
        self.sent: list[DeadLetter] = []
        self.fails = 0

    def send(self, letters: Sequence[DeadLetter]) -> None:
        if self.fails:
            self.fails -= 1
            raise LettersFailed("no")
        self.sent += letters


class Rig:
    def __init__(self, limits: Limits = LIMITS, *, turn_s: float | None = None) -> None:
        self.source, self.store, self.letters, self.metrics = Source(), Store(), Letters(), SinkMetrics()
        self.writer = BatchWriter(self.store, self.letters, self.metrics, limits)
        kinds = {"ett.accepted": "accepted", "ett.jobs": "jobs"}
        clocks = {} if turn_s is None else dict.fromkeys(("clock", "monotonic"), lambda: self.source.turns * turn_s)
        self.sink = Sink(kinds, self.writer, self.metrics, limits, **clocks)
        self.source.owner = self.sink
        self.sink.assigned([HERE])

    def put(self, count: int, lines: int = 1, place: Place = HERE) -> None:
        begin = self.source.waiting[-1].offset + 1 if self.source.waiting else self.source.read_next[place]
        value = b"\n".join([LINE] * lines)
        self.source.waiting += [Record(place, begin + n, 1_000, None, value) for n in range(count)]

    def run(self, ends: Mapping[Place, int] | None = None, stop: threading.Event | None = None) -> None:
        self.sink.run(self.source, stop or threading.Event(), ends)

    def landed(self) -> None:
        """Wait until nothing is being written: by turns, that took no time."""
        until(lambda: self.sink._flight is None or self.sink._flight.over)

    def figure(self, name: str, **labels: Any) -> float:
        found = self.metrics.registry.get_sample_value(f"ettwatch_sink_{name}", {k: str(v) for k, v in labels.items()})
        return found or 0.0


def test_what_is_read_is_written_in_large_batches_and_then_committed() -> None:
    rig = Rig(turn_s=0.001)
    rig.put(100)
    rig.run({HERE: 100})
    assert sum(rows for _, rows, _ in rig.store.inserts) == 100
    assert len(rig.store.inserts) <= 6
    assert rig.source.commits[-1] == {HERE: 100}
    assert rig.sink.ready() is None
    assert rig.figure("rows_total", table="events_log") == 100
    assert rig.figure("records_total", topic="ett.accepted") == 100


def test_what_comes_after_a_pause_waits_only_until_nothing_more_comes() -> None:
    rig = Rig(Limits(seconds=60), turn_s=0.01)
    rig.put(8)

    def at_turn(turn: int) -> None:
        if turn == 5:  # two have brought records, and one none
            until(lambda: rig.store.inserts)
            assert [(table, rows) for table, rows, _ in rig.store.inserts] == [("events_log", 8)]

    rig.source.at_turn = at_turn
    rig.run({HERE: 8})
    assert rig.source.turns < 60 / 0.01  # long before the batch was due


def test_few_records_wait_a_moment_for_others() -> None:
    rig = Rig(Limits(seconds=0.5, poll_s=0.01), turn_s=0.01)
    stop = threading.Event()

    def at_turn(turn: int) -> None:
        rig.landed()
        if turn % 7 == 0:
            rig.put(1)
        if turn == 700:
            stop.set()

    rig.source.at_turn = at_turn
    rig.run(stop=stop)
    assert sum(rows for _, rows, _ in rig.store.inserts) == 100
    assert 7 / 0.5 / 2 <= len(rig.store.inserts) <= 7 / 0.5 + 2


def test_while_clickhouse_is_slow_batches_grow() -> None:
    def batches(slow_s: float) -> list[int]:
        rig = Rig(Limits(rows=10_000, seconds=0.05, poll_s=0.01))
        inner = rig.store.insert

        def insert(table: str, columns: Any, rows: Any, *, token: str | None = None) -> None:
            time.sleep(slow_s)
            inner(table, columns, rows, token=token)

        rig.store.insert = insert  # type: ignore[method-assign]
        rig.put(1_000)
        rig.run({HERE: 1_000})
        return [rows for _, rows, _ in rig.store.inserts]

    begun = time.monotonic()
    slow = batches(0.1)
    assert sum(slow) == 1_000
    # A batch waits for 0.1 s, and the next one is filled while it is written.
    assert len(slow) <= (time.monotonic() - begun) / 0.09 + 2


def test_a_record_is_committed_only_when_its_rows_are_safe() -> None:
    rig = Rig(turn_s=0.001)
    rig.put(10)
    rig.store.gate.clear()

    def at_turn(turn: int) -> None:
        if rig.store.calls and turn > 60:
            assert rig.source.commits == []
            rig.store.gate.set()

    rig.source.at_turn = at_turn
    rig.run({HERE: 10})
    assert rig.source.commits == [{HERE: 10}]


@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreError("disk full", 243)])
def test_it_tries_again_until_it_works_and_reads_no_more_than_it_may_hold(error: StoreError) -> None:
    rig = Rig()
    rig.put(200)
    rig.store.fails = [error] * 1_000_000
    troubles = set()
    held = 0.0
    end = time.monotonic() + 90

    def at_turn(turn: int) -> None:
        nonlocal held
        assert time.monotonic() < end
        troubles.add(rig.sink.ready())
        held = max(held, rig.figure("held_rows"))
        if len(troubles) == 2 and True in rig.source.paused and rig.figure("retries_total") >= 30:
            rig.store.fails = []

    rig.source.at_turn = at_turn
    rig.run({HERE: 200})
    assert troubles == {None, str(error)}
    assert held < LIMITS.rows + 5
    assert True in rig.source.paused
    assert rig.source.paused[-2] is False
    assert sum(rows for _, rows, _ in rig.store.inserts) == 200
    assert rig.figure("retries_total") == rig.store.calls - len(rig.store.inserts) >= 30
    assert rig.source.commits[-1] == {HERE: 200}


def test_a_repeated_insert_bears_the_same_token() -> None:
    rig = Rig()
    tokens = []
    inner = rig.store.insert

    def insert(table: str, columns: Any, rows: Any, *, token: str | None = None) -> None:
        tokens.append(token)
        inner(table, columns, rows, token=token)

    rig.store.insert = insert  # type: ignore[method-assign]
    rig.store.fails = [StoreUnavailable("away")] * 2
    rig.put(3)
    rig.run({HERE: 3})
    rig.put(3)
    rig.run({HERE: 6})
    assert len(tokens) == 4
    assert len(set(tokens)) == 2
    assert None not in tokens


def test_partitions_that_are_taken_away_are_written_first_if_that_can_be() -> None:
    rig = Rig(Limits(rows=1_000, seconds=60, hand_over_s=60, stop_s=1))
    rig.put(10)
    stop = threading.Event()

    def at_turn(turn: int) -> None:
        if turn == 3:
            rig.sink.revoked(lost=False)
            stop.set()

    rig.source.at_turn = at_turn
    rig.run(stop=stop)
    assert rig.store.inserts[0][1] == 10
    assert rig.source.commits == [{HERE: 10}]


@pytest.mark.parametrize("why", ["away", "slow", "lost"])
def test_else_they_are_dropped_and_nothing_is_committed(why: str) -> None:
    hand_over_s = 0.1 if why == "slow" else 30
    rig = Rig(Limits(rows=5, seconds=60, hand_over_s=hand_over_s, stop_s=0.1, first_pause_s=0.01))
    rig.put(10)
    stop = threading.Event()
    if why == "away":
        rig.store.fails = [StoreUnavailable("away")] * 1_000_000
    else:
        rig.store.gate.clear()
    left = 0.0

    def at_turn(turn: int) -> None:
        nonlocal left
        if turn == 20:
            until(lambda: rig.writer.trouble if why == "away" else rig.store.calls)
            begun = time.monotonic()
            rig.sink.revoked(lost=why == "lost")
            left = time.monotonic() - begun
            rig.store.gate.set()
            rig.store.fails = []
        if turn == 60:
            stop.set()

    rig.source.at_turn = at_turn
    rig.run(stop=stop)
    assert rig.source.commits == []
    assert left < 30 if why != "slow" else 0.09 < left < 60
    assert len(rig.store.inserts) <= 1  # what was under way


def test_after_that_it_goes_on_with_what_comes() -> None:
    rig = Rig(Limits(rows=5, seconds=0.01, hand_over_s=0.05, stop_s=0.5, first_pause_s=0.01))
    rig.put(10)
    rig.store.gate.clear()

    def at_turn(turn: int) -> None:
        if turn == 20:
            rig.sink.revoked(lost=False)
            rig.source.read_next = {THERE: 0}
            rig.source.waiting = []
            rig.put(7, place=THERE)
            rig.sink.assigned([THERE])
            rig.store.gate.set()

    rig.source.at_turn = at_turn
    rig.run({HERE: 10, THERE: 7})
    assert all(set(commit) == {THERE} for commit in rig.source.commits)
    assert rig.source.commits[-1] == {THERE: 7}


def test_offsets_that_the_brokers_refuse_are_committed_later() -> None:
    rig = Rig(Limits(rows=5, seconds=0.01, recommit_s=0.05))
    rig.put(5)
    rig.source.refuses = RuntimeError("no coordinator")
    stop = threading.Event()

    def at_turn(turn: int) -> None:
        if rig.figure("commit_failures_total") >= 2:
            rig.source.refuses = None
        if rig.source.commits:
            stop.set()

    rig.source.at_turn = at_turn
    rig.run(stop=stop)
    assert rig.source.commits == [{HERE: 5}]


def test_told_to_stop_it_writes_what_it_holds() -> None:
    rig = Rig(Limits(rows=1_000, seconds=60))
    rig.put(10)
    stop = threading.Event()
    rig.source.at_turn = lambda turn: stop.set() if turn == 4 else None
    rig.run(stop=stop)
    assert [rows for _, rows, _ in rig.store.inserts] == [10]
    assert rig.source.commits == [{HERE: 10}]


def test_told_to_stop_while_clickhouse_hangs_it_leaves_the_rest_uncommitted() -> None:
    rig = Rig(Limits(rows=5, seconds=60, stop_s=0.1))
    rig.put(10)
    rig.store.gate.clear()
    stop = threading.Event()
    rig.source.at_turn = lambda turn: stop.set() if turn == 8 else None
    begun = time.monotonic()
    rig.run(stop=stop)
    assert time.monotonic() - begun < 60  # the insert hangs for so long
    assert rig.source.commits == []
    rig.store.gate.set()


def test_what_cannot_be_read_goes_to_the_dead_letters_before_the_commit() -> None:
    rig = Rig()
    rig.letters.fails = 3
    good, bad = Record(HERE, 0, 1_000, None, LINE), Record(HERE, 1, 1_000, b"key", LINE + b"\nnonsense")
    update = Record(Place("ett.jobs", 0), 0, 1_000, b"j", b"{}")
    rig.source.read_next[update.place] = 0
    rig.source.waiting = [good, bad, update]
    rig.run({HERE: 2, update.place: 1})
    assert [(each.code, each.value, each.key, each.offset, each.index) for each in rig.letters.sent] == [
        ("bad_accepted", LINE + b"\nnonsense", b"key", 1, 1),
        ("bad_update", b"{}", b"j", 0, None),
    ]
    assert rig.store.inserts[0][1] == 2
    assert rig.source.commits[-1] == {HERE: 2, update.place: 1}
    assert rig.figure("refused_total", topic="ett.accepted") == rig.figure("refused_total", topic="ett.jobs") == 1


def test_a_fault_of_its_own_is_not_kept_quiet() -> None:
    rig = Rig()
    rig.put(1)
    rig.store.insert = None  # type: ignore[method-assign, assignment]
    with pytest.raises(TypeError):
        rig.run({HERE: 1})


def test_it_is_unhealthy_when_nothing_turns() -> None:
    now = [100.0]
    rig = Rig()
    sink = Sink({}, rig.writer, rig.metrics, LIMITS, monotonic=lambda: now[0])
    assert sink.healthy() is None
    assert sink.ready() == "has not joined the consumer group yet"
    now[0] += 61
    assert sink.healthy() == "nothing was done for 61 s"
