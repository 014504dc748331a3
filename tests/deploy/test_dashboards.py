"""The dashboards: complete, provisioned, and every SQL in them runs on the tables of this version."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ettwatch_clickhouse import EmbeddedStore, Rollups, Writer, migrate, open_embedded
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import decode_event

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "deploy" / "grafana"
BOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((GRAFANA / "dashboards").glob("*.json"))
}
FROM, TO = 1_790_000_000, 1_790_604_800
# What Grafana's ClickHouse plugin puts in the place of its macros.
MACROS = (
    (re.compile(r"\$__timeFilter\((\w+)\)"), rf"\1 >= toDateTime({FROM}) AND \1 <= toDateTime({TO})"),
    (re.compile(r"\$__fromTime\b"), f"toDateTime({FROM})"),
    (re.compile(r"\$__toTime\b"), f"toDateTime({TO})"),
    (re.compile(r"= \$\{team:singlequote\}"), "= 'ads'"),
    (re.compile(r"= \$\{owner:singlequote\}"), "= 'training'"),
    (re.compile(r"= \$\{job:singlequote\}"), "= 'worked-example'"),
    (re.compile(r"\$\{(?:team|cluster):singlequote\}"), "'(none)','ads','c1'"),
)


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def statements() -> list[tuple[str, str, str]]:
    """Every SQL that there is: what is shown there, the SQL, and the kind of panel."""
    variables = [
        (f"{name}: variable {variable['name']}", variable["query"]["rawSql"], "variable")
        for name, board in BOARDS.items()
        for variable in board["templating"]["list"]
    ]
    return variables + [
        (f"{name}: {panel['title']}", target["rawSql"], panel["type"])
        for name, board in BOARDS.items()
        for panel in panels(board)
        for target in panel["targets"]
        if "rawSql" in target
    ]


def expanded(sql: str) -> str:
    for pattern, text in MACROS:
        sql = pattern.sub(text, sql)
    assert "$" not in sql, f"the test does not know a macro in {sql}"
    return sql


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    opened = open_embedded(tmp_path_factory.mktemp("engine") / "clickhouse")
    try:
        migrate(opened)
        fill(opened)
        yield opened
    finally:
        opened.close()


def fill(store: EmbeddedStore) -> None:
    """The worked example of the rules: 8 GPUs, an attempt that failed, 45.424 % effective."""
    writer, state = Writer(store), JobState("worked-example")
    for line in (ROOT / "tests" / "cases" / "01-worked-example.jsonl").read_text(encoding="utf-8").splitlines():
        event = decode_event(line)
        apply(state, event, Rules())
        writer.event(event, line.encode())
    writer.snapshot(snapshot(state, Rules(), None))
    writer.flush()
    rule = (1, "", "trainer_init", "", "", "", "training", "", "")
    store.insert(
        "owners_log",
        ("loaded", "digest", "stage_prefix", "cluster", "model", "system", "team", "contact", "source"),
        [rule, (*rule[:2], "wasted_training", *rule[3:])],
    )
    Rollups(store).run()


def test_there_is_one_for_each_kind_of_reader() -> None:
    assert set(BOARDS) == {"fleet", "team", "owner", "job", "pipeline"}
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_whole(name: str) -> None:
    board = BOARDS[name]
    assert board["schemaVersion"] >= 39
    assert board["title"]
    assert not board["editable"]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    for panel in panels(board):
        assert panel["title"]
        assert panel["description"].endswith("."), f"{panel['title']} does not say what it shows"
        assert panel["targets"]
        assert panel["fieldConfig"]["defaults"].get("unit") or panel["type"] == "table", panel["title"]


@pytest.mark.parametrize("name", BOARDS)
def test_no_two_panels_lie_over_each_other(name: str) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in BOARDS[name]["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies over {taken[x, y]}"
                taken[x, y] = panel["title"]


def test_every_data_source_is_provisioned() -> None:
    told = yaml.safe_load((GRAFANA / "provisioning" / "datasources" / "ettwatch.yaml").read_text(encoding="utf-8"))
    known = {(source["type"], source["uid"]) for source in told["datasources"]}
    used = {
        (source["type"], source["uid"])
        for board in BOARDS.values()
        for panel in panels(board)
        for source in [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    }
    assert used == known
    for source in told["datasources"]:
        assert "password" not in source
        for secret in source.get("secureJsonData", {}).values():
            assert re.fullmatch(r"\$__file\{/run/secrets/[\w-]+\}", secret)


def test_the_folder_of_the_boards_is_where_compose_puts_it(compose: dict[str, Any]) -> None:
    told = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "ettwatch.yaml").read_text(encoding="utf-8"))
    (provider,) = told["providers"]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in compose["services"]["grafana"]["volumes"]


@pytest.mark.parametrize(("where", "sql", "kind"), statements(), ids=[where for where, _, _ in statements()])
def test_a_query_runs_and_has_what_its_panel_shows(store: EmbeddedStore, where: str, sql: str, kind: str) -> None:
    found = store.query(expanded(sql))
    if kind == "timeseries":
        assert found.columns[0] == "time"
        assert found.types[0].startswith("DateTime")
        values = [t for t in found.types[1:] if not t.startswith(("String", "LowCardinality"))]
        assert values, f"{where}: there is no value to draw"
        assert len(found.types) - len(values) <= 2
    if kind == "stat":
        assert len(found.rows) == 1
        assert len(found.columns) == 1
    if "Silent" not in where and "Stragglers" not in where:
        assert found.rows, f"{where}: nothing is shown for a fleet with a job"


def test_the_figures_are_those_of_the_rules(store: EmbeddedStore) -> None:
    shown = {
        where: store.query(expanded(sql)).rows for where, sql, kind in statements() if kind in ("stat", "barchart")
    }
    assert shown["fleet: Effective training time"] == [(pytest.approx(45.424, abs=0.001),)]
    assert shown["fleet: Failures"] == [(1,)]
    assert shown["fleet: Running jobs"] == [(0,)]
    hours = (6865 - 360) * 8 / 3600  # those of scheduling are waited for
    assert shown["fleet: Failures per 1,000 GPU-hours"] == [(pytest.approx(1_000 / hours),)]
    lost = sum(float(str(hours)) for _, hours in shown["fleet: Lost GPU-hours by stage"])
    assert lost == pytest.approx((6865 - 3118.333) * 8 / 3600, abs=0.001)


def test_a_range_that_cuts_the_job_counts_its_whole_hours(store: EmbeddedStore) -> None:
    (sql,) = [sql for where, sql, _ in statements() if where == "fleet: Lost GPU-hours by stage"]
    start = 1_790_000_000  # 14:13:20
    cut = sql.replace("$__fromTime", f"toDateTime({start})").replace("$__toTime", f"toDateTime({start + 540})")
    hour = "start >= '2026-09-21 14:00:00' AND start < '2026-09-21 15:00:00'"
    recount = (
        f"SELECT stage, sum(gpu_us) / 3600000000 AS hours FROM segments WHERE {hour} AND stage != 'effective_training'"
    )
    assert {row[0]: row[1] for row in store.query(expanded(cut)).rows} == {
        stage: pytest.approx(hours) for stage, hours in store.query(f"{recount} GROUP BY stage").rows
    }


def test_a_team_without_jobs_makes_no_error(store: EmbeddedStore) -> None:
    for where, sql, _ in statements():
        if "variable" not in where:
            store.query(expanded(sql).replace("'(none)','ads','c1'", "'nobody'").replace("= 'ads'", "= 'nobody'"))
