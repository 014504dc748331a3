"""Rollups on a sharded cluster: two shards in two databases of one engine, with tables before both."""

from collections.abc import Iterator

import pytest

from ettwatch_clickhouse import RolledUp, Rollups, Store, Writer, migrate
from ettwatch_clickhouse.cluster import LOCAL, Cluster
from ettwatch_clickhouse.tables import FLEET_VIEWS, ROLLUPS
from ettwatch_core import JobState, Rules, apply, snapshot
from support.clickhouse import StoppedClock, count
from support.clickhouse_cluster import NAME, Engine, TwoShards, two_shards
from support.story import START, Story

RULES = Rules(lateness=None, lost_after=10**15, silent_after=10**15)
JOBS = 6
OWNED = ("loaded", "digest", "stage_prefix", "cluster", "model", "system", "team", "contact", "source")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with two_shards(tmp_path_factory.mktemp("apart")) as found:
        yield found


def write(store: Store, clock: StoppedClock, *, more: bool) -> None:
    writer = Writer(store, clock=clock)
    for number in range(JOBS):
        story = Story(f"job-{number}").submitted().started(60, gpus=8).phase(120, 150, "trainer_init.device_init")
        story.phase(150, 200, "trainer_init", rank=0).phase(150, 260, "trainer_init", rank=1)
        story.trains(540).progress(640, 100)
        if more and number % 2:
            story.progress(9_000, 200).ended(9_100, "failed", cause="hardware").started(9_200, 1)
        state = JobState(story.job)
        for event in story.events:
            apply(state, event, RULES)
        writer.snapshot(snapshot(state, RULES, None if more else START + 20_000_000_000))
    writer.flush()
    clock.now += 60


def test_a_sharded_cluster_rolls_up_as_a_single_server(engine: Engine) -> None:
    single, sharded = engine.store("one"), TwoShards(engine, "apart")
    migrate(single)
    migrate(sharded, cluster=Cluster(NAME, "apart", sharded=True))
    rule = (1, "", "trainer_init", "", "", "", "training", "", "")
    owned: list[Store] = [single, *sharded.shards]
    for store in owned:
        store.insert("owners_log", OWNED, [rule])
    clocks = {name: StoppedClock() for name in ("single", "sharded")}
    keeps = {"single": Rollups(single, clock=clocks["single"]), "sharded": Rollups(sharded, clock=clocks["sharded"])}
    for more in (False, True):
        done = {}
        for name, store in (("single", single), ("sharded", sharded)):
            write(store, clocks[name], more=more)
            done[name] = keeps[name].run()
        assert done["sharded"] == done["single"]
        assert done["single"].jobs > 0
        for view in FLEET_VIEWS:
            rows = single.query(f"SELECT * FROM {view} ORDER BY ALL").rows
            assert rows or not more
            assert sharded.query(f"SELECT * FROM {view} ORDER BY ALL").rows == rows, view
    assert keeps["sharded"].run(full=True) == RolledUp(0, 0, 0, True)
    # Nothing is on both shards, and both have something.
    spread = [[count(shard, table + LOCAL) for table in ROLLUPS] for shard in sharded.shards]
    assert all(number > 0 for of_shard in spread for number in of_shard[:2])
    assert [sum(both) for both in zip(*spread, strict=True)] == [count(sharded, table) for table in ROLLUPS]
