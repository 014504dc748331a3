"""What a worker does in which order, and what it does when something does not work."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ettwatch_core import Pace, Rules, StateError
from ettwatch_faust import inbox
from ettwatch_faust.engine import Engine
from ettwatch_faust.limit import Stopped
from ettwatch_faust.live import Policy
from ettwatch_faust.metrics import Metrics
from ettwatch_faust.sender import Out, SendFailed
from ettwatch_faust.shelf import Write, read_head
from ettwatch_schemas import decode_summary, read_letter
from support.kafka_sim import NAMES, Record, apply_writes
from support.virtual import run

SECOND = 1_000_000
T0 = 1_790_000_000 * SECOND
RULES = Rules()
POLICY = Policy(RULES, Pace(RULES, 60 * SECOND, 60 * SECOND, 30 * 86_400 * SECOND))


class Bench:
    """An engine over a group, a sender and a store that do as they are told, and note what was done.

    Attributes:
        did: What was done, in its order.
        sent: All that was sent.
        fails: How many sends fail from now on.
        refuses: Whether commits are refused.
        answers: What is answered first to those who ask whether partitions are theirs.
        holds: Sends wait until it is set.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.did: list[str] = []
        self.sent: list[Out] = []
        self.commits: list[dict[int, int]] = []
        self.asked: list[dict[int, int]] = []
        self.answers: list[bool | None] = []
        self.sought: list[tuple[int, int]] = []
        self.parts: dict[int, dict[bytes, bytes]] = {}
        self.firsts: dict[int, int | None] = {}
        self.fails = 0
        self.refuses = False
        self.holds: asyncio.Event | None = None
        self.start: dict[int, tuple[int | None, int]] = {}
        self.end: int | None = None
        self.clock_us = T0 + 60 * SECOND
        self.count = 1
        self.metrics = Metrics()
        self.engine = Engine(
            NAMES,
            kwargs.pop("policy", POLICY),
            lambda: self,
            self,
            self,  # type: ignore[arg-type]
            self.metrics,
            clock=lambda: self.clock_us,
            monotonic=lambda: asyncio.get_running_loop().time(),
            **kwargs,
        )

    async def partitions(self) -> int:
        return self.count

    async def commit(self, offsets: dict[int, int]) -> bool:
        self.did.append("commit")
        if self.refuses:
            return False
        self.commits.append(offsets)
        return True

    async def ours(self, offsets: dict[int, int]) -> bool | None:
        self.did.append("ask")
        self.asked.append(offsets)
        return self.answers.pop(0) if self.answers else not self.refuses

    async def committed(self, partition: int) -> tuple[int | None, int]:
        return self.start.get(partition, (None, 0))

    async def first(self, partition: int, offset: int) -> int | None:
        self.did.append("first")
        return self.firsts.get(offset, offset)

    async def seek(self, partition: int, offset: int) -> None:
        self.did.append("seek")
        self.sought.append((partition, offset))

    def highwater(self, partition: int) -> int | None:
        return self.end

    async def send(self, records: Iterable[Out]) -> dict[tuple[str, int], int]:
        records = list(records)
        self.did.append("send " + " ".join(sorted({out.topic.removeprefix("ett.") for out in records})))
        if self.holds is not None:
            await self.holds.wait()
        if self.fails:
            self.fails -= 1
            raise SendFailed("no answer")
        self.sent += records
        return {(out.topic, out.partition): 77 for out in records}

    async def close(self) -> None:
        self.did.append("close")

    def part(self, partition: int) -> dict[bytes, bytes]:
        return self.parts.setdefault(partition, {})

    def write(self, partition: int, writes: Iterable[Write], offset: int | None) -> None:
        self.did.append("write")
        assert offset == 77
        apply_writes(self.part(partition), writes)

    # Helpers

    def to(self, topic: str) -> list[Out]:
        return [out for out in self.sent if out.topic == topic]

    def letters(self) -> list[Any]:
        return [read_letter(out.key, out.value, out.headers) for out in self.to(NAMES.dlq)]

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"ettwatch_worker_{name}", labels) or 0.0


def body(job: str, number: int, **fields: object) -> dict[str, object]:
    kind = {"kind": "heartbeat", "attempt": 0} if number else {"kind": "attempt_started", "attempt": 0}
    return {"v": 1, "id": f"{job}-{number}", "job": job, "ts": T0 + number * SECOND, **kind, **fields}


def record(offset: int, job: str = "a", *, partition: int = 0, value: bytes | None = b"", **fields: object) -> Record:
    if value == b"":
        value = json.dumps(body(job, offset, **fields)).encode()
    return Record(NAMES.events, partition, offset, job.encode(), value, (T0 + offset * SECOND) // 1000)


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, "ettwatch_faust")
    return lambda: [str(getattr(line, "event", "")) for line in caplog.records]


def test_effects_before_state_before_offsets_before_the_local_copy() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 3)
        for offset in range(3):
            bench.engine.take(record(offset))
        bench.engine.take(record(3, value=b"junk"))
        bench.end = 4
        await bench.engine.flush()
        assert bench.did == [
            "ask",
            "send accepted attempts events.dlq jobs phases segments",
            f"send {NAMES.state}",
            "commit",
            "write",
        ]
        assert bench.commits == [{0: 4}]
        assert [(out.partition, out.key, (out.value or b"").count(b"\n")) for out in bench.to(NAMES.accepted)] == [
            (0, None, 2)
        ]
        (letter,) = bench.letters()
        assert (letter.value, letter.key, letter.offset, letter.index) == (b"junk", b"a", 3, None)
        ((_, value),) = bench.parts[0].items()
        head = read_head(value)
        assert (head.epoch, head.offset) == (3, 3)
        (summary,) = bench.to(NAMES.jobs)
        assert decode_summary(summary.value or b"").job == "a"

    run(main())


def test_a_flush_of_nothing_does_nothing() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.flush()
        await bench.engine.assign([0], 1)
        await bench.engine.flush()
        assert bench.did == []
        bench.engine.take(record(0))
        await bench.engine.flush()
        bench.did.clear()
        await bench.engine.flush()
        assert bench.did == []

    run(main())


def test_records_of_which_nothing_counts_are_committed_too() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        await bench.engine.flush()
        bench.did.clear()
        again = record(0)
        bench.engine.take(again._replace(offset=1))
        await bench.engine.flush()
        assert bench.did == ["commit"]
        assert bench.commits[-1] == {0: 2}
        assert bench.metric("duplicates_total") == 1

    run(main())


def test_what_is_not_sent_is_sent_again_until_it_is(warned: Callable[[], list[str]]) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        bench.fails = 6
        flush = asyncio.create_task(bench.engine.flush())
        await asyncio.sleep(1)
        assert "it is sent again until they do" in (bench.engine.trouble or "")
        bench.engine.take(record(1))  # goes on meanwhile
        begun = asyncio.get_running_loop().time()
        await flush
        assert asyncio.get_running_loop().time() - begun < 30
        assert bench.engine.trouble is None
        assert bench.did[-4:] == ["send accepted", f"send {NAMES.state}", "commit", "write"]
        assert bench.commits == [{0: 1}]
        await bench.engine.flush()
        assert bench.commits == [{0: 1}, {0: 2}]
        assert bench.metric("retries_total", what="send") == 6

    run(main())
    assert warned() == ["cannot_send"] * 6


def test_what_must_not_be_committed_is_dropped(warned: Callable[[], list[str]]) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        bench.refuses = True
        await bench.engine.flush()
        assert bench.did[-1] == "ask"
        assert bench.sent == [], "others tell of these jobs"
        assert bench.parts[0] == {}
        assert not bench.engine.joined
        bench.engine.take(record(1))
        bench.did.clear()
        await bench.engine.flush()
        assert bench.did == [], "what comes after that is no business of ours"
        bench.refuses = False
        await bench.engine.assign([0], 2)
        for offset in range(2):
            bench.engine.take(record(offset))
        await bench.engine.flush()
        assert bench.commits == [{0: 2}]
        assert read_head(next(iter(bench.parts[0].values()))).epoch == 2

    run(main())
    assert warned() == ["fenced"]


def test_what_was_sent_meanwhile_is_not_committed(warned: Callable[[], list[str]]) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        bench.answers, bench.refuses = [True], True
        await bench.engine.flush()
        assert bench.did[-1] == "commit"
        assert bench.sent
        assert bench.parts[0] == {}
        assert not bench.engine.joined

    run(main())
    assert warned() == ["fenced"]


def test_it_asks_only_where_the_last_answer_is_old(warned: Callable[[], list[str]]) -> None:
    """A process that stood still does not know for how long."""

    async def main() -> None:
        bench = Bench(certain_s=15)
        bench.start[0] = 0, 0
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        bench.answers = [None, None, True]
        await bench.engine.flush()
        assert bench.asked == [{0: 0}] * 3
        assert bench.engine.trouble is None
        for offset in range(1, 4):
            await asyncio.sleep(14)
            bench.engine.take(record(offset))
            await bench.engine.flush()
        assert len(bench.asked) == 3, "a commit is an answer"
        bench.engine.take(record(4))
        await asyncio.sleep(15)
        before, bench.refuses = len(bench.sent), True
        await bench.engine.flush()
        assert bench.asked[3:] == [{0: 4}]
        assert len(bench.sent) == before
        assert not bench.engine.joined

    run(main())
    assert warned() == ["cannot_send", "cannot_send", "fenced"]


def test_it_asks_between_two_tries_to_send() -> None:
    async def main() -> None:
        bench = Bench(certain_s=15)
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        bench.fails, bench.answers = 100, [True, True, False]
        await bench.engine.flush()
        assert bench.answers == []
        assert bench.sent == []
        assert not bench.engine.joined

    run(main())


@pytest.mark.parametrize("reason", ["cancelled", "failed"])
def test_after_a_flush_that_was_cut_off_nothing_is_committed(reason: str) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        bench.holds = asyncio.Event()
        flush = asyncio.create_task(bench.engine.flush())
        await asyncio.sleep(0.1)
        bench.engine.take(record(1))
        if reason == "cancelled":
            flush.cancel()
        else:
            bench.sent = None  # type: ignore[assignment]
            bench.holds.set()
        with pytest.raises((asyncio.CancelledError, TypeError)):
            await flush
        bench.sent, bench.holds = [], None
        bench.engine.take(record(2))
        await bench.engine.flush()
        assert bench.commits == []
        assert bench.sent == []

    run(main())


def test_records_that_come_twice_count_once() -> None:
    async def main() -> None:
        bench = Bench()
        bench.start[0] = (2, 0)
        await bench.engine.assign([0], 1)
        for offset in (0, 1, 2, 3, 2, 3, 4, 0):
            bench.engine.take(record(offset))
        await bench.engine.flush()
        assert bench.commits == [{0: 5}]
        (accepted,) = bench.to(NAMES.accepted)
        assert [json.loads(line)["id"] for line in (accepted.value or b"").split(b"\n")] == ["a-2", "a-3", "a-4"]
        assert bench.metric("duplicates_total") == 5

    run(main())


def taken(bench: Bench) -> list[int]:
    lines = [line for out in bench.to(NAMES.accepted) for line in (out.value or b"").split(b"\n")]
    return [int(json.loads(line)["id"].removeprefix("a-")) for line in lines]


def test_what_was_lost_on_the_way_is_asked_for_again(warned: Callable[[], list[str]]) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        for offset in (0, 1, 5, 6):
            bench.engine.take(record(offset))
        assert bench.sought == []
        await bench.engine.flush()
        assert bench.sought == [(0, 2)]
        assert bench.commits == [{0: 2}]
        for offset in (7, 8, 2, 3, 4, 5, 6, 7):  # 7 and 8 were still on their way
            bench.engine.take(record(offset))
        await bench.engine.flush()
        assert bench.sought == [(0, 2)]
        assert taken(bench) == list(range(8))
        assert bench.metric("gaps_total") == 1

    run(main())
    assert warned() == ["gap"]


def test_of_offsets_without_records_the_brokers_are_asked() -> None:
    async def main() -> None:
        bench = Bench()
        bench.firsts = {1: 3}
        await bench.engine.assign([0], 1)
        for offset in (0, 3, 4):
            bench.engine.take(record(offset))
        await bench.engine.flush()
        assert bench.did[:2] == ["first", "seek"]
        assert bench.sought == [(0, 3)]
        for offset in (5, 3, 4, 5):  # the first 5 was still on its way
            bench.engine.take(record(offset))
        await bench.engine.flush()
        assert bench.sought == [(0, 3)]
        assert taken(bench) == [0, 3, 4, 5]
        assert bench.commits[-1] == {0: 6}

    run(main())


def test_a_partition_that_ends_with_the_end_of_a_transaction_is_not_behind_for_ever() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        bench.end, bench.firsts = 2, {1: 2}
        await bench.engine.flush()
        assert bench.to(NAMES.jobs) == [], "another record may wait"
        bench.clock_us += 1200 * SECOND
        for _ in range(8):
            await asyncio.sleep(1)
            await bench.engine.flush()
        assert bench.did.count("first") == 1
        assert bench.commits[-1] == {0: 2}
        assert decode_summary(bench.to(NAMES.jobs)[-1].value or b"").status == "silent", "its own clock counts"

    run(main())


def test_a_record_from_elsewhere_does_not_make_others_pass_for_missing() -> None:
    """Offset 4 holds nothing. 8 was on its way from before a rebalance, and comes again in its turn."""

    async def main() -> None:
        bench = Bench()
        bench.start[0] = (4, 0)
        bench.firsts = {4: 5}
        await bench.engine.assign([0], 1)
        for offset in (8, 8, 5):
            bench.engine.take(record(offset))
        await bench.engine.flush()
        for offset in (8, 5, 6, 7, 8, 9):
            bench.engine.take(record(offset))
        await bench.engine.flush()
        assert taken(bench) == [5, 6, 7, 8, 9]

    run(main())


def test_what_nobody_knows_is_asked_again() -> None:
    async def main() -> None:
        bench = Bench()
        bench.firsts = {0: None}
        await bench.engine.assign([0], 1)
        for _ in range(3):
            bench.engine.take(record(7))
            await bench.engine.flush()
            await asyncio.sleep(3)
        assert bench.sought == [(0, 0)] * 3
        assert bench.commits == []
        bench.firsts = {0: 7}
        bench.engine.take(record(7))
        await bench.engine.flush()
        bench.engine.take(record(7))
        await bench.engine.flush()
        assert taken(bench) == [7]

    run(main())


def test_partitions_may_go_while_the_brokers_are_asked() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0, 1], 1)
        for partition in (0, 1):
            bench.engine.take(record(7, partition=partition))
        first = bench.first

        async def slow(partition: int, offset: int) -> int | None:
            await asyncio.sleep(1)
            return await first(partition, offset)

        bench.first = slow  # type: ignore[method-assign]
        flush = asyncio.create_task(bench.engine.flush())
        await asyncio.sleep(0.5)
        bench.engine.drop()
        await flush
        assert bench.sought == []

    run(main())


def test_partitions_may_go_while_they_are_taken_over() -> None:
    async def main() -> None:
        bench = Bench()
        committed = bench.committed

        async def slow(partition: int) -> tuple[int | None, int]:
            await asyncio.sleep(1)
            return await committed(partition)

        bench.committed = slow  # type: ignore[method-assign]
        older = asyncio.create_task(bench.engine.assign([0, 1], 1))
        await asyncio.sleep(0.5)
        await bench.engine.revoke(1)
        newer = asyncio.create_task(bench.engine.assign([1], 2))
        await asyncio.sleep(0.9)
        assert not bench.engine.joined
        await asyncio.gather(older, newer)
        assert bench.engine.joined
        assert bench.metric("partitions") == 1

    run(main())


def test_it_asks_again_where_the_answer_does_not_come() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(5))
        await bench.engine.flush()
        for offset in range(6, 12):
            await asyncio.sleep(0.9)
            bench.engine.take(record(offset))
            await bench.engine.flush()
        assert 2 <= len(bench.sought) <= 4
        for offset in range(4):
            bench.engine.take(record(offset))
        await bench.engine.flush()
        assert taken(bench) == [0, 1, 2, 3]

    run(main())


def test_what_retention_removed_is_told(warned: Callable[[], list[str]]) -> None:
    async def main() -> None:
        bench = Bench()
        bench.start[0] = (3, 10)
        await bench.engine.assign([0], 1)
        assert bench.metric("lost_records_total") == 7
        bench.engine.take(record(10))
        await bench.engine.flush()
        assert taken(bench) == [10]

    run(main())
    assert warned() == ["records_lost"]


def test_it_begins_where_the_topic_begins() -> None:
    async def main() -> None:
        bench = Bench()
        bench.start[0] = (None, 5)
        await bench.engine.assign([0], 1)
        bench.engine.take(record(5))
        await bench.engine.flush()
        assert taken(bench) == [5]
        assert bench.metric("lost_records_total") == 0

    run(main())


def test_it_takes_no_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(inbox, "_MOST_EVENTS", 3)
        bench = Bench()
        await bench.engine.assign([0], 1)
        for offset in range(2):
            bench.engine.take(record(offset))
        await asyncio.wait_for(bench.engine.room(), 1)
        bench.engine.take(record(2))
        room = asyncio.create_task(bench.engine.room())
        await asyncio.sleep(10)
        assert not room.done()
        await bench.engine.flush()
        await asyncio.wait_for(room, 1)
        monkeypatch.setattr(inbox, "_MOST_EVENTS", 10**6)
        monkeypatch.setattr(inbox, "_MOST_BYTES", 1_000)
        bench.engine.take(record(3, value=b"x" * 1_001))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(bench.engine.room(), 1)
        bench.engine.drop()
        await asyncio.wait_for(bench.engine.room(), 1)

    run(main())


def test_too_many_dead_letters_end_it_before_they_are_committed() -> None:
    async def main() -> None:
        bench = Bench(dlq_limit=3)
        await bench.engine.assign([0], 1)
        for offset in range(2):
            bench.engine.take(record(offset, value=b"junk"))
        bench.engine.take(record(2))
        with pytest.raises(
            Stopped, match=r"3 of the last 4 records were refused, the last one for bad_json .*raise --dlq-limit"
        ):
            bench.engine.take(record(3, value=b"junk"))
        assert bench.did == []

    run(main())


def test_dead_letters_of_long_ago_do_not_count() -> None:
    async def main() -> None:
        bench = Bench(dlq_limit=3)
        await bench.engine.assign([0], 1)
        offsets: Iterator[int] = iter(range(10**6))
        for _ in range(4):
            for _ in range(2):
                bench.engine.take(record(next(offsets), value=b"junk"))
            for _ in range(998):
                bench.engine.take(record(next(offsets), value=record(1).value))
        bench.engine.take(record(next(offsets), value=b"junk"))
        bench.engine.take(record(next(offsets), value=b"junk"))
        with pytest.raises(Stopped, match="3 of the last 1000"):
            bench.engine.take(record(next(offsets), value=b"junk"))

    run(main())


def test_what_is_held_is_flushed_before_partitions_go() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        await bench.engine.revoke(5)
        assert bench.commits == [{0: 1}]
        assert len(bench.parts[0]) == 1
        assert not bench.engine.joined
        bench.engine.take(record(1))
        await bench.engine.flush()
        assert len(bench.commits) == 1

    run(main())


def test_partitions_go_even_if_the_flush_hangs(warned: Callable[[], list[str]]) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        bench.holds = asyncio.Event()
        hangs = asyncio.create_task(bench.engine.flush())
        await asyncio.sleep(0)
        bench.engine.take(record(1))
        begun = asyncio.get_running_loop().time()
        await bench.engine.revoke(5)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(5, abs=0.1)
        bench.holds.set()
        await hangs
        assert bench.commits == []
        assert bench.parts[0] == {}

    run(main())
    assert warned() == ["revoked_unflushed"]


def test_the_brokers_may_be_away_while_partitions_go() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        bench.fails = 10**6
        tries = asyncio.create_task(bench.engine.flush())
        await asyncio.sleep(60)
        await bench.engine.revoke(5)
        await asyncio.sleep(60)
        assert tries.done()
        assert bench.commits == []

    run(main())


def test_a_state_that_cannot_be_read_ends_it_without_a_commit() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))
        await bench.engine.flush()
        ((key, value),) = bench.parts[0].items()
        bench.parts[0][key] = value[:-20] + bytes(20)
        await bench.engine.revoke(1)
        bench.start[0] = (1, 0)
        await bench.engine.assign([0], 2)
        with pytest.raises(StateError):
            bench.engine.take(record(1))
        assert len(bench.commits) == 1
        bench.parts[0][key] = b"\x09" + value[1:]
        with pytest.raises(StateError, match="has form 9"):
            await bench.engine.assign([0], 3)

    run(main())


def test_nobody_is_silent_while_events_wait_to_be_read() -> None:
    async def main() -> None:
        bench = Bench(policy=replace(POLICY, behind_us=0))
        bench.clock_us = T0 + 3600 * SECOND
        await bench.engine.assign([0], 1)
        bench.engine.take(record(0))

        async def status() -> str:
            await bench.engine.flush()
            return decode_summary(bench.to(NAMES.jobs)[-1].value or b"").status

        assert await status() == "starting"  # the brokers did not say yet how many there are
        bench.end = 3
        bench.engine.take(record(1))
        assert await status() == "starting"
        assert bench.metric("lag", partition="0") == 1
        bench.engine.take(record(2))
        assert await status() == "silent"
        assert bench.metric("lag", partition="0") == 0

    run(main())


def test_jobs_that_lie_where_they_do_not_belong_are_refused() -> None:
    async def main() -> None:
        bench = Bench()
        bench.count = 8
        await bench.engine.assign(list(range(8)), 1)
        for partition in range(8):
            bench.engine.take(record(0, partition=partition))
        await bench.engine.flush()
        (accepted,) = bench.to(NAMES.accepted)
        wrong = {letter.partition for letter in bench.letters()}
        assert {letter.code for letter in bench.letters()} == {"wrong_partition"}
        assert wrong == set(range(8)) - {accepted.partition}
        assert bench.metric("dead_letters_total", code="wrong_partition") == 7

    run(main())


def test_states_are_packed_away_beyond_a_weight() -> None:
    async def main() -> None:
        bench = Bench(states=10)
        bench.end = 40
        await bench.engine.assign([0], 1)
        for offset in range(40):
            bench.engine.take(record(offset, f"job-{offset % 20}"))
        await bench.engine.flush()
        await asyncio.sleep(6)
        bench.clock_us += SECOND
        await bench.engine.flush()
        await asyncio.sleep(6)
        await bench.engine.flush()
        assert bench.metric("states_in_memory") < 20
        bench.end = 60
        for offset in range(40, 60):
            bench.engine.take(record(offset, f"job-{offset % 20}"))
        bench.clock_us += 61 * SECOND
        await bench.engine.flush()
        versions = {}
        for out in bench.to(NAMES.jobs):
            summary = decode_summary(out.value or b"")
            versions[summary.job] = summary.version >> 32
        assert versions == {f"job-{number}": 3 for number in range(20)}

    run(main())


def test_closing_lets_go_of_the_connections() -> None:
    async def main() -> None:
        bench = Bench()
        await bench.engine.close()
        assert bench.did == ["close", "close"]

    run(main())
