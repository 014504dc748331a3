"""Alerts in ClickHouse: every state once, whatever is written twice."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ettwatch_clickhouse import EmbeddedStore, Store, StoreError, StoreUnavailable, migrate, open_embedded
from ettwatch_monitor.alerts.deliver import Plan, TableChannel
from support.clickhouse import FaultyStore, after, before
from support.delivery import HOUR, MINUTE, SECOND, T0, Killed, delivering, firing, resolved

PLAN = Plan(updates=True, mutes=False, batch=100)


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
    engine.command("TRUNCATE TABLE alerts_log")
    return engine


class Kept:
    """A store that outlives those who close it."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def close(self) -> None:
        pass


def channel(store: Any) -> TableChannel:
    return TableChannel("table", PLAN, lambda: Kept(store))


def test_the_view_shows_the_newest_state_of_each_time_that_an_alert_fired(tmp_path: Path, store: Store) -> None:
    alert = replace(
        firing(owner="storage", component="trainer_init"), facts={"p": 0.01, "stage": "x", "bad": float("nan")}
    )
    with delivering(tmp_path / "outbox", channel(store)) as delivery:
        for minute, state in enumerate([alert, replace(alert, body="worse", severity="critical")]):
            now = T0 + minute * MINUTE
            delivery.put(replace(state, updated_at=now), now)
            delivery.deliver_all(now)
        delivery.put(resolved(alert, T0 + HOUR), T0 + HOUR)
        delivery.put(replace(firing(at=T0 + 2 * HOUR), labels={}), T0 + 2 * HOUR)
        delivery.deliver_all(T0 + 2 * HOUR)
        assert delivery.health()[0].error is None
    table = store.query("SELECT * FROM alerts ORDER BY episode")
    first, second = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert first == {
        "key": "tts|team=ads",
        "episode": T0,
        "seq": 2,
        "id": first["id"],
        "status": "resolved",
        "severity": "warning",
        "metric": "tts",
        "team": "ads",
        "owner": "storage",
        "component": "trainer_init",
        "cluster": "",
        "model": "",
        "starts_at": datetime.fromtimestamp(T0 / 1e6, UTC),
        "ends_at": datetime.fromtimestamp((T0 + HOUR) / 1e6, UTC),
        "updated_at": datetime.fromtimestamp((T0 + HOUR) / 1e6, UTC),
        "silenced": False,
        "labels": {
            "alertname": "EttwatchRegression",
            "component": "trainer_init",
            "metric": "tts",
            "owner": "storage",
            "severity": "warning",
            "team": "ads",
        },
        "title": alert.title,
        "body": alert.body,
        "figures": {"p": 0.01},
        "words": {"stage": "x", "bad": "nan"},
        "sql_titles": ["starts of the team"],
        "sql_queries": ["SELECT * FROM attempts WHERE team = 'ads' AND tts_s < 600"],
    }
    assert (second["status"], second["ends_at"], second["team"]) == ("firing", None, "")
    states = store.query("SELECT seq, status, severity FROM alerts_log ORDER BY updated_at").rows
    assert states == [
        (0, "firing", "warning"),
        (1, "firing", "critical"),
        (2, "resolved", "warning"),
        (0, "firing", "warning"),
    ]


@pytest.mark.parametrize("crash", [Killed(), StoreUnavailable("the answer was lost")])
def test_what_is_written_twice_is_one_row(tmp_path: Path, store: Store, crash: BaseException) -> None:
    faulty = FaultyStore(store)
    faulty.plan = [after(crash)]  # type: ignore[arg-type]
    for now in (T0, T0 + 10 * SECOND, T0 + MINUTE):
        try:
            with delivering(tmp_path / "outbox", channel(faulty), now=now) as delivery:
                delivery.put(firing(at=T0), now)
                # Another batch than the first time: the engine takes it for a new insert.
                delivery.put(firing("other", at=now), now)
                delivery.deliver_all(now)
        except Killed:
            pass
    assert faulty.inserts == ["alerts_log"] * 2
    assert store.query("SELECT key, status FROM alerts ORDER BY key").rows == [
        ("other", "firing"),
        ("tts|team=ads", "firing"),
    ]


@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreError("no rights", 497)])
def test_an_engine_that_refuses_is_asked_again_and_raises_no_alert(
    tmp_path: Path, store: Store, error: StoreError
) -> None:
    faulty = FaultyStore(store)
    faulty.plan = [before(error)] * 3
    with delivering(tmp_path / "outbox", channel(faulty)) as delivery:
        delivery.put(firing(), T0)
        for minute in range(3):
            delivery.deliver_all(T0 + minute * MINUTE)
        health = delivery.health()[0]
        assert (health.error, health.failing_since, health.waiting) == (str(error), T0, 1)
        delivery.deliver_all(T0 + HOUR)
        assert delivery.health()[0].waiting == 0
    assert store.query("SELECT count() FROM alerts").rows == [(1,)]


def test_an_alert_that_no_column_takes_stands_in_nobodys_way(tmp_path: Path, store: Store) -> None:
    faulty, wrong = FaultyStore(store), StoreError("cannot insert into alerts_log: a value does not fit: far")
    faulty.plan = [before(wrong), None, before(wrong)]
    with delivering(tmp_path / "outbox", channel(faulty)) as delivery:
        delivery.put(firing("good"), T0)
        delivery.put(firing("far"), T0)
        delivery.deliver_all(T0)
        assert delivery.health()[0].refused == 1
    assert store.query("SELECT key FROM alerts").rows == [("good",)]
