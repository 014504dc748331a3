"""What goes wrong in Faust as it is, and that it does not matter here. Where a fault is gone, the detour may go too."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError, NodeNotReadyError, RequestTimedOutError
from faust.stores import memory
from faust.transport.conductor import ConductorCompiler
from faust.transport.consumer import Consumer
from faust.types import TP
from faust.types.tuples import ConsumerMessage

from ettwatch_core import StateError
from ettwatch_faust import group as group_module
from ettwatch_faust.app import WorkerApp, make_app
from ettwatch_faust.batches import records_of
from ettwatch_faust.group import FaustGroup
from ettwatch_faust.settings import WorkerSettings
from ettwatch_faust.store import MemoryStore, RocksStore
from support.kafka_sim import Record

EVENTS = TP("ett.events", 0)
CHANGELOG = "ett-worker-state-changelog"


@pytest.fixture
def app() -> WorkerApp:
    app = make_app(WorkerSettings.read({"ETTWATCH_KAFKA": "nowhere.invalid:1"}))
    app.finalize()
    return app


@pytest.fixture
def plain() -> Iterator[faust.App]:
    app = faust.App("plain", broker="kafka://nowhere.invalid:1", store="memory://", web_enabled=False)
    yield app
    made: Any = app._consumer
    if made is not None:
        made._thread.thread_loop.close()


def message(value: Any, *, tp: TP = EVENTS, offset: int = 7) -> ConsumerMessage:
    about: Any = (tp.topic, tp.partition, offset, 0.0, 0, None, None, value)
    rest: Any = (None, 0, 0, tp, None, None, None, 0)
    return ConsumerMessage(*about, *rest)


def a_record(offset: int, value: bytes | None = b"", *, topic: str = "ett.events", partition: int = 0) -> Record:
    body = {"v": 1, "id": f"e{offset}", "kind": "heartbeat", "job": "job", "ts": 1_790_000_000_000_000, "attempt": 0}
    value = json.dumps(body).encode() if value == b"" else value
    return Record(topic, partition, offset, b"job", value, 1_790_000_000_000)


class Stream:
    """Batches of records, as the agent gets them; then nothing more."""

    def __init__(self, *batches: list[Record]) -> None:
        self.batches = batches

    def noack(self) -> "Stream":
        return self

    async def events(self) -> AsyncIterator[Any]:
        for batch in self.batches:
            yield SimpleNamespace(message=message(batch))


def fold_of(app: WorkerApp) -> Callable[[Any], Any]:
    (agent,) = app.agents.values()
    return agent.fun  # type: ignore[no-any-return]


# Agents


def test_in_faust_an_agent_that_raises_goes_on_with_the_next_record(plain: faust.App) -> None:
    seen: list[int] = []

    async def agent(stream: Any) -> None:
        async for value in stream:
            if value == 1:
                raise ValueError("cannot")
            seen.append(value)

    async def main() -> None:
        channel = plain.channel()
        running = plain.agent(channel, name="agent")(agent)
        plain.flow_control.resume()
        await running.start()
        for value in range(4):
            await channel.send(value=value)
        for _ in range(1_200):
            await asyncio.sleep(0.05)
            if 3 in seen:
                break
        with contextlib.suppress(TimeoutError):  # it waits for records that do not come
            await asyncio.wait_for(running.stop(), 0.2)

    asyncio.run(main())
    assert seen == [0, 2, 3]


def test_here_it_ends_the_worker_and_nothing_is_committed(app: WorkerApp, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def take(record: Record) -> None:
        if record.offset == 1:
            raise StateError("broken")
        taken.append(record.offset)

    crashed: list[BaseException] = []

    async def crash(reason: BaseException) -> None:
        crashed.append(reason)

    monkeypatch.setattr(app.engine, "take", take)
    monkeypatch.setattr(app, "crash", crash)
    asyncio.run(fold_of(app)(Stream([a_record(i) for i in range(4)], [a_record(4)])))
    assert taken == [0]
    assert str(app.stopped_by) == "broken"
    assert crashed == [app.stopped_by]
    assert app.healthy() == "stopped: broken"
    assert not app.engine.joined


# Records that cannot be decoded


def handler(channel: Any, acked: list[Any]) -> Any:
    """What Faust's conductor does with a message."""
    consumer = SimpleNamespace(on_buffer_full=None, on_buffer_drop=None, ack=acked.append)
    conductor: Any = SimpleNamespace(
        app=SimpleNamespace(
            consumer=consumer,
            flow_control=SimpleNamespace(acquire=nothing),
            producer=SimpleNamespace(buffer=SimpleNamespace(wait_until_ebb=nothing)),
            sensors=SimpleNamespace(on_topic_buffer_full=None),
        )
    )
    return ConductorCompiler().build(conductor, EVENTS, {channel})


async def nothing() -> None:
    pass


def test_in_faust_what_cannot_be_decoded_is_acknowledged_and_gone(plain: faust.App) -> None:
    topic: Any = plain.topic("ett.events", value_serializer="json")
    told = message(b"{")
    seen: list[Any] = []
    acked: list[Any] = []

    async def note(error: Exception, of: Any) -> None:
        seen.append(error)

    topic.on_value_decode_error = note
    asyncio.run(handler(topic, acked)(told))
    assert acked == [told]
    assert len(seen) == 1
    assert topic.queue.empty()


def test_here_all_bytes_reach_the_agent(app: WorkerApp) -> None:
    (agent,) = app.agents.values()
    batch = [a_record(0, b"{"), a_record(1, None), a_record(2, b"\xff")]
    told = message(batch)
    acked: list[Any] = []

    async def main() -> Any:
        await handler(agent.channel, acked)(told)
        return agent.channel.queue.get_nowait()

    event = asyncio.run(main())
    assert event.message.value is batch
    assert acked == []


# Acknowledgements


def offsets(acked: list[int], committed: int) -> int | None:
    """The next offset that Faust would commit."""
    consumer: Any = SimpleNamespace(
        _acked={EVENTS: acked},
        _acked_index={EVENTS: set(acked)},
        _gap={EVENTS: None},
        _committed_offset={EVENTS: committed},
    )
    return Consumer._new_offset(consumer, EVENTS)


def test_in_faust_one_record_that_is_never_acknowledged_stops_all_commits() -> None:
    assert offsets([11, 12, 13], 10) == 14
    assert offsets([13, 14, 15], 10) is None


def test_in_faust_the_first_commit_of_a_partition_passes_over_what_was_not_acknowledged() -> None:
    assert offsets([3, 4, 5], 0) == 6


def test_here_no_record_is_acknowledged(app: WorkerApp) -> None:
    (agent,) = app.agents.values()
    assert agent.channel.acks is False
    assert app.topics.acks_enabled_for("ett.events") is False


# Tables


def test_in_faust_a_table_cannot_be_written_between_records(plain: faust.App) -> None:
    table = plain.Table("table", partitions=1)
    with pytest.raises(TypeError, match="outside of stream iteration"):
        table["a"] = 1


def test_in_faust_the_store_keeps_what_it_wrote_of_partitions_that_went(plain: faust.App) -> None:
    async def main() -> None:
        table = plain.Table("table", partitions=2)
        store: Any = memory.Store("memory://", plain, table)
        store["a"] = 1
        await store.on_recovery_completed({TP("changelog", 1)}, set())
        assert store["a"] == 1

    asyncio.run(main())


def a_store(app: WorkerApp) -> MemoryStore:
    table: Any = app.tables["state"]
    assert isinstance(table.data, MemoryStore)
    return table.data


def test_here_the_store_forgets_them(app: WorkerApp) -> None:
    store = a_store(app)
    tps = [TP(CHANGELOG, partition) for partition in range(3)]
    for partition in range(3):
        store.write(partition, [(b"key", b"value")], 0)
    kept = {*tps[:2], TP("ett.events", 2)}  # the same number of another topic is another thing
    asyncio.run(store.on_rebalance(kept, {tps[2]}, {tps[1]}))
    assert [dict(store.part(partition)) for partition in range(3)] == [{b"key": b"value"}, {}, {}]
    store.reset_state()
    assert store.part(0) == {}


def test_in_faust_a_key_that_was_deleted_comes_back_from_the_changelog(plain: faust.App) -> None:
    """Unless its value happens to be false."""
    store: Any = memory.Store("memory://", plain, plain.Table("table", partitions=1))
    events = [SimpleNamespace(key=b"k", value=value, message=message(value)) for value in (b"v", None, b"w", None)]
    store.apply_changelog_batch(events[:3], lambda key: key, lambda value: value)
    assert store.data == {b"k": b"w"}


@pytest.fixture(params=["memory", "rocksdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    settings = {"ETTWATCH_KAFKA": "nowhere.invalid:1", "ETTWATCH_STORE": request.param}
    app = make_app(WorkerSettings.read(settings, {"state_dir": str(tmp_path / "state")}))
    app.finalize()
    table: Any = app.tables["state"]
    return table.data


def test_a_changelog_is_read_in_its_order_into_either_store(store: Any) -> None:
    def change(key: bytes, value: bytes | None, offset: int, partition: int = 0) -> Record:
        return Record(CHANGELOG, partition, offset, key, value, 0)

    first = [change(b"a", b"1", 0), change(b"b", b"1", 1), change(b"a", None, 2), change(b"c", b"1", 3)]
    second = [change(b"a", b"2", 4), change(b"b", None, 5), change(b"d", b"9", 0, partition=1)]
    batches = [SimpleNamespace(message=message(records)) for records in (first, second)]
    assert list(records_of(batches)) == [*first, *second]
    store.apply_changelog_batch(batches, None, None)
    assert dict(store.part(0).items() if isinstance(store, MemoryStore) else readable(store, 0)) == {
        b"a": b"2",
        b"c": b"1",
    }
    assert store.part(1).get(b"d") == b"9"
    assert b"d" in store.part(1)
    assert b"d" not in store.part(0)
    assert store.part(0).get(b"b") is None


def readable(store: RocksStore, partition: int) -> dict[bytes, bytes]:
    return {key: value for key, value in store.part(partition).items() if not key.startswith(b"__")}


def test_what_lies_on_disk_knows_how_much_of_the_changelog_it_has(tmp_path: Path) -> None:
    settings = {"ETTWATCH_KAFKA": "nowhere.invalid:1", "ETTWATCH_STORE": "rocksdb"}
    app = make_app(WorkerSettings.read(settings, {"state_dir": str(tmp_path / "state")}))
    app.finalize()
    table: Any = app.tables["state"]
    store = table.data
    assert store.persisted_offset(TP(CHANGELOG, 3)) is None
    store.write(3, [(b"a", b"1")], 41)
    assert store.persisted_offset(TP(CHANGELOG, 3)) == 41
    store.write(3, [(b"a", None)], 42)
    assert store.persisted_offset(TP(CHANGELOG, 3)) == 42
    assert readable(store, 3) == {}


# Commits


class Thread:
    """The thread of Faust's consumer, over a client that does as it is told."""

    def __init__(self, *outcomes: KafkaError | None) -> None:
        self.outcomes = list(outcomes)
        self.commits: list[Any] = []

    def _ensure_consumer(self) -> Any:
        return self

    async def call_thread(self, method: Any, *args: Any) -> Any:
        return await method(*args)

    async def commit(self, wanted: Any) -> None:
        self.commits.append({place.partition: offset for place, offset in wanted.items()})
        outcome = self.outcomes.pop(0)
        if outcome is not None:
            raise outcome


def committing(*outcomes: KafkaError | None) -> tuple[bool, list[Any]]:
    thread = Thread(*outcomes)
    app = SimpleNamespace(consumer=SimpleNamespace(_thread=thread))
    finder: Any = None
    return asyncio.run(FaustGroup(app, "ett.events", finder).commit({0: 5, 3: 9})), thread.commits


def test_a_commit_that_fails_for_a_moment_is_made_again() -> None:
    told = {0: 5, 3: 9}
    assert committing(None) == (True, [told])
    assert committing(RequestTimedOutError(), NodeNotReadyError(), None) == (True, [told] * 3)


@pytest.mark.parametrize("error", [CommitFailedError("went"), IllegalStateError("not assigned")])
def test_a_commit_that_must_not_be_is_not_tried_again(error: KafkaError) -> None:
    assert committing(error) == (False, [{0: 5, 3: 9}])


def test_a_commit_that_never_passes_ends_the_worker() -> None:
    with pytest.raises(RequestTimedOutError):
        committing(*[RequestTimedOutError()] * group_module._TRIES)
