"""Against ClickHouse: from rows to alerts and back, also when the database fails."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ettwatch_app.owners import find_owners
from ettwatch_clickhouse import EmbeddedStore, StoreError, StoreUnavailable, Writer, migrate, open_embedded
from ettwatch_core import JobState, apply, snapshot
from ettwatch_core import Rules as CoreRules
from ettwatch_monitor.alerts.watch import Loop, Memory, Rules, StateError, Watcher, Window
from ettwatch_monitor.alerts.watch.read import read_details
from ettwatch_schemas import decode_event
from support.clickhouse import FaultyStore, before, empty
from support.regress import DAY, HOUR, T0, attempts, insert

NOW = T0 + 40 * DAY
CASES = Path(__file__).parent.parent / "cases"
OWNERS = find_owners(Path("nowhere"), {})


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    store = open_embedded(tmp_path_factory.mktemp("engine") / "clickhouse")
    try:
        migrate(store)
        yield store
    finally:
        store.close()


@pytest.fixture
def store(engine: EmbeddedStore) -> EmbeddedStore:
    empty(engine)
    return engine


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "episodes.sqlite") as memory:
        yield memory


@pytest.fixture
def slow(store: EmbeddedStore) -> EmbeddedStore:
    """A fleet in which reading checkpoints takes five times as long for one of two teams, from day 35 on."""
    insert(store, attempts(1, a_day=12, slow=5, since=35))
    insert(store, attempts(2, a_day=12, team="search"))
    return store


def test_a_slow_stage_is_found_and_named_with_queries_that_show_it(slow: EmbeddedStore, memory: Memory) -> None:
    report = Watcher(Rules(), OWNERS, memory).round(slow, NOW)
    keys = {alert.key: alert for alert in report.alerts if alert.firing}
    assert "tts|team=ads" in keys or any("tts" in alert.body for alert in keys.values())
    assert not [key for key in keys if "search" in key]
    alert = next(alert for alert in keys.values() if alert.labels.get("team") == "ads")
    assert "stage trainer_init.checkpoint_load" in alert.body
    assert "Since about 2026-02-0" in alert.body
    assert alert.labels["alertname"] == "EttwatchRegression"
    for each in keys.values():
        for title, query in each.sql:
            assert slow.query(query).rows, f"{each.key}: {title} shows nothing"


def test_owners_of_components_hear_of_theirs(slow: EmbeddedStore, memory: Memory) -> None:
    report = Watcher(Rules(), OWNERS, memory).round(slow, NOW)
    looked = {key for key in report.looks if "owner" in key.labels}
    assert {key.labels["component"] for key in looked} >= {"trainer_init", "hardware_setup", "shutdown"}


def test_another_process_goes_on_where_the_first_ended(slow: EmbeddedStore, tmp_path: Path) -> None:
    with Memory(tmp_path / "a.sqlite") as memory:
        first = Watcher(Rules(), OWNERS, memory).round(slow, NOW)
    with Memory(tmp_path / "a.sqlite") as memory:
        second = Watcher(Rules(), OWNERS, memory).round(slow, NOW + HOUR)
    assert first.opened
    assert not second.opened
    told = [replace(alert, updated_at=0) for alert in first.alerts]
    assert [replace(alert, updated_at=0) for alert in second.alerts] == told


def test_an_error_of_the_database_begins_and_ends_no_alert(slow: EmbeddedStore, memory: Memory) -> None:
    watcher = Watcher(Rules(), OWNERS, memory)
    watcher.round(slow, NOW)
    book = watcher.book
    faulty = FaultyStore(slow)
    faulty.plan = [before(StoreUnavailable("away"))]
    with pytest.raises(StoreUnavailable):
        watcher.round(faulty, NOW + HOUR)
    assert watcher.book is book


def test_the_loop_tells_of_health_and_comes_back(slow: EmbeddedStore, memory: Memory) -> None:
    calls: list[int] = []

    def connect() -> FaultyStore:
        calls.append(1)
        if len(calls) < 3:
            raise StoreUnavailable("cannot connect")
        return FaultyStore(slow)

    slow.close, closing = lambda: None, slow.close  # type: ignore[method-assign]
    try:
        loop = Loop(Watcher(Rules(), OWNERS, memory), connect, None, list, Rules())
        assert loop.ready(NOW) == "no round was done yet"
        due = loop.step(NOW)
        assert due == NOW + 30_000_000
        assert loop.ready(NOW) == "cannot connect"
        assert loop.healthy(NOW) is None
        loop.step(due)
        due = loop.step(due + 30_000_000)
        assert loop.ready(due) is None
        registry = loop.figures.registry
        assert registry.get_sample_value("ettwatch_alerts_query_errors_total") == 2
        assert registry.get_sample_value("ettwatch_alerts_up") == 1
        assert registry.get_sample_value("ettwatch_alerts_rounds_total", {"result": "failed"}) == 2
        assert loop.ready(due + 10 * HOUR) is not None
        loop.close()
    finally:
        slow.close = closing  # type: ignore[method-assign]


def test_an_empty_database_says_nothing(store: EmbeddedStore, memory: Memory) -> None:
    report = Watcher(Rules(), OWNERS, memory).round(store, NOW)
    assert (report.alerts, report.looks, report.attempts) == ((), {}, 0)


def test_all_jobs_failing_at_once_is_one_alert(store: EmbeddedStore, memory: Memory) -> None:
    at = NOW - HOUR // 6
    for number, team in enumerate("abcdef"):
        told = attempts(number, a_day=6, days=40, team=team)
        live = [
            replace(one, job=f"live-{one.job}", start=at - 5 * HOUR, end=at, outcome="failed", cause="network")
            for one in told[-8:]
        ]
        insert(store, [one for one in told if one.end < at] + live)
    watcher = Watcher(Rules(), OWNERS, memory)
    report = watcher.round(store, NOW)
    assert [one.key.metric for one in report.opened] == ["outage"]
    alert = report.alerts[0]
    assert alert.severity == "critical"
    assert "48 of" in alert.title
    later = watcher.round(store, NOW + 2 * HOUR)
    assert [one.key.metric for one in later.closed] == ["outage"]


def test_maintenance_is_left_out_and_on_record(store: EmbeddedStore, memory: Memory) -> None:
    told = attempts(1, a_day=12)
    begin, end = T0 + 35 * DAY, T0 + 36 * DAY
    hurt = [replace(one, outcome="failed", cause="unknown") if begin <= one.end < end else one for one in told]
    insert(store, hurt)
    window = Window(begin, end, "new switches", cluster="c1")
    report = Watcher(Rules(windows=(window,)), OWNERS, memory).round(store, NOW)
    assert not report.opened
    row = memory.audit()[0]
    number = sum(begin <= one.end < end for one in told)
    assert (row.scope, row.reason, row.failures) == ("cluster=c1", "new switches", number)
    assert row.starts > 0
    assert row.gpu_hours > 0


def test_an_accepted_level_ends_the_alert_and_is_not_found_again(slow: EmbeddedStore, memory: Memory) -> None:
    watcher = Watcher(Rules(), OWNERS, memory)
    opened = watcher.round(slow, NOW).opened
    for one in opened:
        memory.accept(str(one.key), NOW)
    later = watcher.round(slow, NOW + HOUR)
    assert {one.key for one in later.closed} == {one.key for one in opened}
    assert {one.ending for one in later.closed} == {"accepted"}
    assert not {one.key for one in later.opened} & {one.key for one in opened}
    assert not memory.accepted()


def test_names_with_quotes_do_no_harm(store: EmbeddedStore, memory: Memory) -> None:
    name = "o'brien\\';--"
    insert(store, attempts(1, a_day=12, slow=6, since=35, team=name))
    report = Watcher(Rules(), OWNERS, memory).round(store, NOW)
    mine = [alert for alert in report.alerts if alert.labels.get("team") == name]
    assert mine
    for title, query in mine[0].sql:
        assert store.query(query).rows, title


def test_killed_in_the_middle_of_saving_it_holds_the_old_or_the_new(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from ettwatch_monitor.alerts.detect import Book, Incident, StreamKey\n"
        "from ettwatch_monitor.alerts.watch import Memory\n"
        "memory = Memory(Path(sys.argv[1]))\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1\n"
        "    keys = [StreamKey('tts', (('team', f'{n}-{m}'),)) for m in range(50)]\n"
        "    memory.save(Book(tuple(Incident(k, 'regression', 1, 1, 1, n, 0.1, 1.0) for k in keys)), {}, (), n)\n"
        "    if n == 1: print('on', flush=True)\n"
    )
    import sys

    path = tmp_path / "episodes.sqlite"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.kill()
    with Memory(path) as memory:
        book, _ = memory.load()
    assert len(book.incidents) == 50
    assert len({one.found for one in book.incidents}) == 1


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "episodes.sqlite"
    path.write_bytes(b"this is no database, and long enough to be told apart" * 100)
    with pytest.raises(StateError, match="move it away"):
        Memory(path)


def test_a_missing_table_is_an_error_of_the_database(tmp_path: Path, memory: Memory) -> None:
    class NoTable:
        def query(self, *_: object, **__: object) -> None:
            raise StoreError("cannot run the query: no table", 60)

    with pytest.raises(StoreError):
        Watcher(Rules(), OWNERS, memory).round(NoTable(), NOW)  # type: ignore[arg-type]


def test_a_closer_look_sees_every_stage_of_a_start(store: EmbeddedStore) -> None:
    state, rules = JobState("worked-example"), CoreRules(lateness=None)
    for line in (CASES / "01-worked-example.jsonl").read_bytes().splitlines():
        apply(state, decode_event(line), rules)
    snap = snapshot(state, rules)
    writer = Writer(store)
    writer.snapshot(snap)
    writer.flush()
    batches = {attempt.attempt: attempt.first_batch for attempt in snap.attempts}
    wanted: dict[int, dict[str, float]] = {number: {} for number in batches}
    for segment in snap.segments:
        batch = batches.get(segment.attempt)
        if batch is not None and segment.start < batch:
            found = wanted[segment.attempt]
            found[segment.stage] = found.get(segment.stage, 0.0) + (segment.end - segment.start) / 1e6
    assert all(len(stages) >= 3 for stages in wanted.values())
    details = read_details(store, ["worked-example"])
    assert {number: detail.startup for (_, number), detail in details.items()} == {
        number: pytest.approx(stages) for number, stages in wanted.items()
    }
