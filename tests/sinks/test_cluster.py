"""What migrations become on a cluster: every statement is parsed by the engine; the sharded ones run, on two shards."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ettwatch_clickhouse import SchemaRefused, Store, StoreError, Writer, migrate, rebuild
from ettwatch_clickhouse.cluster import LOCAL, SHARD, Cluster, ClusterError, render, render_records
from ettwatch_clickhouse.migrate import migrations, pending, script, statements
from ettwatch_clickhouse.roles import ROLES, roles
from ettwatch_clickhouse.schema import check_schema
from ettwatch_clickhouse.shapes import UnknownShape
from ettwatch_clickhouse.standing import look_up
from ettwatch_clickhouse.tables import EVERYWHERE, ROLLUP_VIEWS, ROLLUPS, SHARD_KEYS
from ettwatch_clickhouse.updates import Bounds, Standing, Wholes
from ettwatch_core import Rules
from ettwatch_schemas import encode_event
from support.clickhouse import EVERY_TABLE, VIEWS, StoppedClock, count, read_truth, should_be
from support.clickhouse_cluster import NAME, Engine, OneServer, part_shards, two_shards
from support.story import Story

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "clickhouse.md"
LAYOUTS: Final = {
    "single": None,
    "replicated": Cluster("prod", "ettwatch", replicated=True),
    "sharded": Cluster("prod-1", "ettwatch", sharded=True),
    "both": Cluster("{cluster}", "ettwatch", replicated=True, sharded=True, path="/ett/{installation}"),
}
JOBS: Final = 6
NOW: Final = time.time()  # what was received long ago is dropped
ALL: Final = [statement for migration in migrations() for statement in statements(migration.text)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with two_shards(tmp_path_factory.mktemp("two-shards")) as found:
        yield found


@pytest.fixture(scope="module")
def parser(engine: Engine) -> Store:
    return engine.store("parser")


def parsed(parser: Store, statement: str) -> str:
    return str(parser.query("SELECT formatQuery({sql:String})", {"sql": statement}).rows[0][0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_engine_parses_every_statement(parser: Store, layout: str) -> None:
    cluster = LAYOUTS[layout]
    made = script("ettwatch", cluster) + roles("ettwatch", cluster)
    assert len(made) > 30
    for statement in made:
        text = parsed(parser, statement)
        changes = text.startswith(("CREATE", "ALTER", "GRANT"))
        assert changes or text.startswith(("USE ", "INSERT INTO schema_migrations"))
        assert ("ON CLUSTER" in text) == (changes and cluster is not None)
        with pytest.raises(StoreError, match=r"Syntax error"):
            parsed(parser, statement + " AND NONSENSE (")


def test_the_engine_parses_the_statements_of_the_page(parser: Store) -> None:
    blocks = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    found = [statement for block in blocks for statement in statements(block)]
    assert len(found) >= 5
    for statement in found:
        assert parsed(parser, statement)


@pytest.mark.parametrize("layout", ["replicated", "both"])
def test_every_table_of_a_replicated_cluster_is_replicated(parser: Store, layout: str) -> None:
    cluster = LAYOUTS[layout]
    assert cluster is not None
    engines = {}
    for statement in script("ettwatch", cluster):
        text = parsed(parser, statement)
        if text.startswith("CREATE TABLE"):
            (line,) = (line for line in text.splitlines() if line.startswith("ENGINE = "))
            engines[text.split()[5]] = line.removeprefix("ENGINE = ")
            assert "non_replicated" not in text
    own = LOCAL if cluster.sharded else ""
    for table in EVERY_TABLE:
        version = "made" if table in ROLLUPS else "" if table in {"events_log", *EVERYWHERE} else "ver"
        if table in EVERYWHERE:  # each server holds all rows
            path, replica, name = f"{cluster.path}/all/ettwatch/{table}", "{shard}-{replica}", table
        else:
            path, replica, name = f"{cluster.path}/{{shard}}/ettwatch/{table}{own}", "{replica}", table + own
        more = f", {version}" if version else ""
        assert engines.pop(name) == f"ReplicatedReplacingMergeTree('{path}', '{replica}'{more})"
    # Each server has to know what was applied, whatever its shard.
    records = f"ReplicatedReplacingMergeTree('{cluster.path}/all/ettwatch/schema_migrations', '{{shard}}-{{replica}}')"
    assert engines.pop("schema_migrations") == records
    assert set(engines) == (set(EVERY_TABLE) - EVERYWHERE if cluster.sharded else set())
    for table, found in engines.items():
        key = SHARD_KEYS.get(table, "cityHash64(job)")
        assert found == f"Distributed('{cluster.name}', 'ettwatch', '{table}{LOCAL}', {key})"


def test_all_that_is_asked_on_a_shard_is_its_own(parser: Store) -> None:
    cluster = LAYOUTS["sharded"]
    assert cluster is not None
    for statement in ALL:
        if "CREATE OR REPLACE VIEW" not in statement:
            continue
        view, *facades = (parsed(parser, text) for text in render(statement, cluster))
        asked = [line.split("FROM ")[1].split()[0] for line in view.splitlines() if "FROM " in line]
        asked = [name for name in asked if name != "("]
        assert asked
        assert all(name.endswith((LOCAL, SHARD)) or name in EVERYWHERE for name in asked)
        if view.split()[4] in EVERYWHERE:
            assert not facades
            continue
        (facade,) = facades
        assert f"'{view.split()[4].removesuffix(SHARD)}{SHARD}')" in facade


def test_what_is_not_known_is_refused() -> None:
    cluster = LAYOUTS["both"]
    assert cluster is not None
    head = "CREATE TABLE IF NOT EXISTS t (job String"
    for statement, words in {
        "DROP TABLE t": "of this kind is not known: DROP TABLE t",
        "CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a": "of this kind is not known",
        "CREATE TABLE IF NOT EXISTS d.t (a Int8) ENGINE = MergeTree": "a plain name is missing",
        "CREATE TABLE IF NOT EXISTS t AS u": "a bracket is missing",
        f"{head}) ORDER BY job": "names no engine",
        f"{head}) ENGINE = Log": "engine Log; only plain MergeTrees",
        f"{head}) ENGINE = ReplicatedMergeTree('/x', 'y') ORDER BY job": "engine ReplicatedMergeTree",
        "CREATE TABLE IF NOT EXISTS t (a Int8) ENGINE = MergeTree ORDER BY a": "has no column job",
        f"{head}, a Int8 TTL x + 1) ENGINE = MergeTree ORDER BY job": "column with a TTL",
        f"{head}, a Int8 EPHEMERAL COMMENT 'x') ENGINE = MergeTree ORDER BY job": "needs a default",
        "CREATE OR REPLACE VIEW v AS SELECT 1": "a bracket is missing",
        "CREATE OR REPLACE VIEW v (a Int8) AS SELECT a FROM elsewhere": "what is asked here is not known",
        "CREATE OR REPLACE VIEW v (a Int8) AS SELECT a FROM system.tables": "what is asked here is not known",
        "CREATE OR REPLACE VIEW v (a Int8) AS SELECT a FROM jobs_log, jobs": "what is asked here is not known",
        "CREATE OR REPLACE VIEW v (a Int8) AS SELECT a FROM numbers(3)": "what is asked here is not known",
        "ALTER TABLE t FREEZE": "change of this kind is not known",
        "ALTER TABLE t ADD COLUMN a Int8, DETACH PART 'x'": "change of this kind is not known",
        "ALTER TABLE t MODIFY COLUMN a REMOVE TTL": "change of this kind is not known",
    }.items():
        with pytest.raises(UnknownShape, match=words):
            render(statement, cluster)
    with pytest.raises(UnknownShape, match="not created as a table"):
        render_records(ALL[1], cluster)


def test_views_of_views_and_other_names_are_the_shards_own() -> None:
    cluster = LAYOUTS["sharded"]
    assert cluster is not None
    select = "SELECT jobs.job AS job FROM jobs ANY LEFT JOIN (SELECT job FROM events_log AS e) AS x USING (job)"
    view, _ = render(f"CREATE OR REPLACE VIEW v (job String) AS {select}", cluster)
    assert view.endswith(
        "AS SELECT jobs.job AS job FROM jobs_shard AS jobs "
        "ANY LEFT JOIN (SELECT job FROM events_log_local AS e) AS x USING (job)"
    )


def test_changes_of_how_rows_are_kept_are_the_shards_matter() -> None:
    cluster = LAYOUTS["both"]
    assert cluster is not None
    made = render(
        "ALTER TABLE jobs_log ADD INDEX IF NOT EXISTS i nof TYPE minmax, MODIFY TTL t1 + toIntervalDay(9), "
        "MODIFY SETTING non_replicated_deduplication_window = 7",
        cluster,
    )
    assert len(made) == 1
    assert made[0].startswith("ALTER TABLE jobs_log_local ON CLUSTER '{cluster}'\n")
    assert made[0].endswith("MODIFY SETTING replicated_deduplication_window = 7")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a'b", {"sharded": True}, '"a\'b" is no name of a cluster'),
        ("", {"sharded": True}, "is no name of a cluster"),
        ("prod", {}, "say how the tables are laid out over cluster prod"),
        ("prod", {"sharded": True, "database": "a-b"}, "'a-b' is no name of a database"),
        ("prod", {"replicated": True, "path": "no/slash"}, "'no/slash' is no path in Keeper"),
        ("prod", {"replicated": True, "path": "/a'b"}, "is no path in Keeper"),
    ],
)
def test_wrong_settings_are_one_clear_line(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ClusterError, match=words) as caught:
        Cluster(name, **{"database": "ettwatch", **options})
    assert "\n" not in str(caught.value)


def test_roles_have_the_least_rights() -> None:
    for cluster in LAYOUTS.values():
        made = roles("ettwatch", cluster)
        _, writer, reader = ROLES
        for name in ROLES:
            assert sum(f"CREATE ROLE IF NOT EXISTS {name}" in text for text in made) == 1
        of_reader = [text for text in made if text.endswith(f"TO {reader}")]
        of_writer = [text for text in made if text.endswith(f"TO {writer}")]
        assert of_reader
        assert all("GRANT" in text and " SELECT ON ettwatch." in text for text in of_reader)
        reads = [text.split(" ON ettwatch.")[1].split()[0] for text in of_writer if " SELECT ON ettwatch." in text]
        assert all(" SELECT, INSERT ON ettwatch." in text or " SELECT ON ettwatch." in text for text in of_writer)
        # It writes tables, and reads what the rollups are made from.
        assert {name.removesuffix(SHARD) for name in reads} == {"jobs", "attempts", "schema_migrations", *ROLLUP_VIEWS}
        assert not any("*" in text for text in [*of_reader, *of_writer])
        assert any("readonly = 2" in text and reader in text for text in made)


def write(store: Store) -> list[Any]:
    """Jobs, half of them told twice, the second time otherwise: rows are replaced, and some are gone."""
    clock = StoppedClock(NOW)
    snaps = {}
    for more in (False, True):
        writer = Writer(store, clock=clock, sleep=clock.sleep)
        for number in range(JOBS):
            story = Story(f"job-{number}").submitted(labels={"n": str(number)}).started(60, gpus=8)
            story.phase(120, 150, "trainer_init.device_init").trains(540).progress(640, 100)
            if more and number % 2:
                story.progress(9_000, 200).ended(9_100, "failed", cause="hardware")
                story.started(9_200, 1).phase(9_200, 9_230, "shutdown.teardown", attempt=1, background=True)
            for event in story.events:
                writer.event(event, encode_event(event))
            snap = story.at()
            snaps[number] = snap
            writer.snapshot(snap)
        writer.flush()
        clock.now += 60
    return [snaps[number] for number in range(JOBS)]


@pytest.fixture(scope="module")
def sharded(engine: Engine) -> OneServer:
    store = OneServer(engine.store("sharded"))
    cluster = Cluster(NAME, "sharded", replicated=False, sharded=True)
    assert migrate(store, cluster=cluster) == [m.name for m in migrations()]
    assert migrate(store, cluster=cluster) == []
    assert all("ON CLUSTER" in sql for sql in store.told)
    check_schema(store)
    return store


def test_the_layout_is_found_out_and_another_one_is_refused(sharded: OneServer, engine: Engine) -> None:
    for wanted in (None, Cluster(NAME, "sharded", replicated=True), Cluster(NAME, "sharded", True, True)):
        with pytest.raises(SchemaRefused, match="the database is sharded; the settings say: .*correct --cluster"):
            pending(sharded, cluster=wanted)
    single = engine.store("alone")
    migrate(single)
    with pytest.raises(SchemaRefused, match="is on a single server; the settings say: replicated and sharded"):
        migrate(single, cluster=Cluster(NAME, "alone", True, True))


def test_a_rebuild_on_a_cluster_is_refused(sharded: OneServer) -> None:
    with pytest.raises(SchemaRefused, match="the database is sharded; tables can be made anew on a single server only"):
        rebuild(sharded, Rules())


def test_a_sharded_cluster_says_what_a_single_server_says(sharded: OneServer, engine: Engine) -> None:
    single = engine.store("single")
    migrate(single)
    snaps = write(sharded)
    write(single)
    # Spelt otherwise: what is hashed is its content, which the writer sends in a column that is never stored.
    event = ("job-1", 1_790_000_000_000_000, "x", "heartbeat", 1, 0, "trainer", '{"a": 1}', '{"a":1}', int(NOW * 1e6))
    columns = ("job", "ts", "id", "kind", "v", "rank", "source", "raw", "canonical", "received")
    for store in (sharded, single):
        store.insert("events_log", columns, [event, (*event[:7], '{"a":1}', "", event[-1])])
    for view in VIEWS:
        assert count(sharded, view + SHARD) == count(single, view) > 0
    part_shards(sharded)

    shards = sharded.query("SELECT shardNum() AS n, uniqExact(job) FROM jobs_log GROUP BY n ORDER BY n").rows
    assert len(shards) == 2, "all jobs fell on one shard: the test shows nothing"
    assert sum(number for _, number in shards) == JOBS  # type: ignore[misc]
    for view in VIEWS:
        # Of two copies of an event, either is shown.
        sql = f"SELECT * {'EXCEPT (raw, received) ' if view == 'events' else ''}FROM {view} ORDER BY ALL"
        assert sharded.query(sql) == single.query(sql)
    for snap in snaps[:2]:
        assert read_truth(sharded, snap.summary.job) == should_be(snap)
    for sql in (
        "SELECT component, sum(gpu_us), count(), uniqExact(job) FROM segments GROUP BY component ORDER BY component",
        "SELECT quantileExact(0.5)(e2e_us), sum(nof), max(t1) FROM jobs",
        "SELECT job, stage FROM segments WHERE job IN (SELECT job FROM jobs WHERE nof > 0) ORDER BY ALL",
        "SELECT j.job, count() FROM jobs AS j JOIN phases AS p USING (job) GROUP BY job ORDER BY job",
        "SELECT a.job, b.job FROM jobs AS a JOIN jobs AS b ON a.nof = b.nof ORDER BY ALL",
        "SELECT DISTINCT uid FROM events_log WHERE id = 'x'",
    ):
        rows = sharded.query(sql).rows
        assert rows
        assert rows == single.query(sql).rows
    assert len(sharded.query("SELECT 1 FROM events WHERE id = 'x'").rows) == 1
    jobs = [snap.summary.job for snap in snaps]
    asked = Wholes(jobs, jobs, dict.fromkeys(jobs, Bounds(1, 0, -1)))
    standing = look_up(single, asked)
    assert standing.phases
    assert sorted_standing(look_up(sharded, asked)) == sorted_standing(standing)


def sorted_standing(found: Standing) -> list[dict[str, list[Any]]]:
    return [{job: sorted(rows) for job, rows in each.items()} for each in (found.attempts, found.phases, found.hours)]
