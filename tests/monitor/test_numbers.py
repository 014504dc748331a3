"""The page's numbers are those of SQL and of `report`."""

import math
from collections.abc import Iterator
from typing import Any, Final

import pytest

from ettwatch_app.reading import read_fleet, read_job, read_summaries
from ettwatch_clickhouse import Store, connect
from ettwatch_core.ownership import Owners
from support.monitor import FROM, TO, Served

HOUR: Final = 3_600_000_000
DAY: Final = 24 * HOUR
WINDOWS: Final = (
    (FROM + 5 * HOUR, TO - 7 * HOUR),
    (FROM + 2 * DAY, FROM + 3 * DAY),
    (FROM + 9 * HOUR, FROM + DAY + 2 * HOUR),
)
FIGURES: Final = """
    100 * sum(gpu_effective_s) / sum(gpu_s) AS ett_pct, sum(gpu_s) / 3600 AS total_gpu_h,
    sum(gpu_effective_s) / 3600 AS effective_gpu_h, sum(gpu_lost_s) / 3600 AS lost_gpu_h,
    sum(gpu_held_s) / 3600 AS held_gpu_h, sum(gpu_waited_s) / 3600 AS waited_gpu_h,
    sum(gpu_unsaved_s) / 3600 AS unsaved_gpu_h, sum(job_s) / 3600 AS job_h, sum(attempts) AS attempts,
    sum(starts) AS starts, sum(recoveries) AS recoveries, sum(nof) AS nof, sum(nof_infra) AS nof_infra,
    sum(nof_preempted) AS nof_preempted,
    quantileExactInclusiveOrNullArray(0.5)(tts_us) / 1e6 AS tts_p50_s,
    quantileExactInclusiveOrNullArray(0.99)(ttr_us) / 1e6 AS ttr_p99_s
"""


@pytest.fixture(scope="module")
def store(fleet: Served) -> Iterator[Store]:
    store = connect(fleet.sql)
    yield store
    store.close()


def hours(view: str, start: int, end: int) -> str:
    at = "fromUnixTimestamp64Micro({}, 'UTC')"
    return f"{view} WHERE hour >= {at.format(start)} AND hour < {at.format(end)}"


def rows(store: Store, sql: str) -> list[dict[str, Any]]:
    found = store.query(sql)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def same(told: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        missing = value is None or math.isnan(value)
        assert told[name] == (None if missing else pytest.approx(value, rel=1e-9)), name


@pytest.mark.parametrize(("start", "end"), WINDOWS)
def test_the_figures_of_the_fleet_are_those_of_its_view(fleet: Served, store: Store, start: int, end: int) -> None:
    (wanted,) = rows(store, f"SELECT {FIGURES} FROM {hours('fleet_hourly', start, end)}")
    total = fleet.plain.get("fleet", {"from": start, "to": end})["total"]
    same(total, wanted)


@pytest.mark.parametrize("by", ["team", "model", "cluster"])
@pytest.mark.parametrize(("start", "end"), WINDOWS)
def test_the_figures_of_each_group_are_those_of_its_view(
    fleet: Served, store: Store, by: str, start: int, end: int
) -> None:
    sql = f"SELECT {by} AS key, {FIGURES} FROM {hours(f'{by}_hourly', start, end)} GROUP BY key"
    wanted = {row.pop("key"): row for row in rows(store, sql)}
    told = fleet.plain.get("fleet", {"from": start, "to": end, "by": by})["groups"]
    assert {group["key"] for group in told} == set(wanted)
    for group in told:
        same(group["figures"], wanted[group["key"]])
    losses = [group["lost_gpu_h"] for group in told]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize(("start", "end"), WINDOWS[:1])
def test_the_owners_are_those_of_their_view(fleet: Served, store: Store, start: int, end: int) -> None:
    sql = f"SELECT owner, sum(gpu_s) / 3600 AS lost FROM {hours('owner_hourly', start, end)} GROUP BY owner"
    wanted = {row["owner"]: row["lost"] for row in rows(store, sql)}
    told = fleet.plain.get("fleet", {"from": start, "to": end, "by": "owner"})
    assert {g["key"]: g["lost_gpu_h"] for g in told["groups"]} == pytest.approx(wanted)
    assert sum(wanted.values()) == pytest.approx(told["total"]["lost_gpu_h"])
    for name, lost in sorted(wanted.items(), key=lambda item: item[1])[-4:]:
        view = fleet.plain.get(f"owners/{name or '-'}", {"from": start, "to": end})
        assert view["lost_gpu_h"] == pytest.approx(lost)
        for part in ("teams", "models", "clusters"):
            assert sum(view[part].values()) == pytest.approx(lost)
        assert sum(point["lost_gpu_h"] for point in view["series"]) == pytest.approx(lost)


@pytest.mark.parametrize("step", ["hour", "day", "week"])
@pytest.mark.parametrize("by", ["", "team", "owner"])
def test_points_add_up_to_the_window(fleet: Served, step: str, by: str) -> None:
    window = {"from": FROM + 5 * HOUR, "to": TO - 7 * HOUR}
    total = fleet.plain.get("fleet", window)["total"]
    told = fleet.plain.get("fleet/series", {**window, "step": step, **({"by": by} if by else {})})
    assert sum(point["lost_gpu_h"] for point in told["points"]) == pytest.approx(total["lost_gpu_h"])
    if by != "owner":
        assert sum(point["nof"] for point in told["points"]) == total["nof"]


def test_the_stages_are_those_of_their_view_and_of_the_components(fleet: Served, store: Store) -> None:
    told = fleet.plain.get("fleet", {"from": FROM, "to": TO, "team": "ads"})
    sql = (
        f"SELECT stage, sum(gpu_s) / 3600 AS gpu_h FROM {hours('stage_hourly', FROM, TO)} AND team = 'ads' "
        "AND stage != 'effective_training' GROUP BY stage HAVING gpu_h > 0"
    )
    wanted = {row["stage"]: row["gpu_h"] for row in rows(store, sql)}
    assert {row["stage"]: row["gpu_h"] for row in told["stages"]} == pytest.approx(wanted)
    assert sum(told["components"].values()) == pytest.approx(told["total"]["total_gpu_h"])


def test_all_of_it_is_what_report_says_of_all_jobs(fleet: Served, store: Store) -> None:
    view = read_fleet(store, Owners("none", ()), None)
    told = fleet.plain.get("fleet", {"from": FROM - DAY, "to": TO + 60 * DAY})
    assert told["total"]["jobs"] == view.number
    assert told["total"]["ett_pct"] == pytest.approx(view.ett_pct)
    assert told["total"]["nof"] == view.nof
    assert told["total"]["total_gpu_h"] == pytest.approx(view.gpu_e2e_s / 3_600)
    of_api = {row["stage"]: row["gpu_h"] * 3_600 for row in told["stages"]}
    of_report = {s: v for s, v in view.gpu_stage_s.items() if s != "effective_training" and v > 0}
    assert of_api == pytest.approx(of_report)


def test_a_job_is_what_report_says_of_it(fleet: Served, store: Store) -> None:
    for summary in read_summaries(store, limit=5):
        view = read_job(store, summary.job, Owners("none", ()))
        assert view is not None
        path = summary.job.replace("%", "%25").replace("/", "%2F")
        if not path.isascii() or any(c in path for c in ' \r\n<>"?'):
            continue
        told = fleet.plain.get(f"jobs/{path}")
        row = told["row"]
        assert (row["job"], row["status"], row["nof"]) == (summary.job, summary.status, summary.nof)
        assert row["ett_pct"] == summary.ett_pct
        assert row["tts_s"] == summary.tts_s
        assert (row["t0_us"], row["t1_us"]) == (summary.t0, summary.t1)
        assert told["ttr_s"] == summary.ttr_s
        assert told["components"] == summary.components
        assert told["stages"] == summary.stages
        assert [a["effective_s"] for a in told["attempts"]] == [a.effective_s for a in view.attempts]
        line = fleet.plain.get(f"jobs/{path}/timeline")
        drawn = [(s["attempt"], s["stage"], s["start_us"], s["end_us"], s["gpus"]) for s in line["segments"]]
        assert drawn == [(s.attempt, s.stage, s.start, s.end, s.gpus) for s in view.segments]
        assert sum(told["stages_gpu_h"].values()) == pytest.approx(row["total_gpu_h"])


def test_a_page_of_jobs_is_in_order_and_whole(fleet: Served, store: Store) -> None:
    number = int(str(store.query("SELECT count() FROM jobs").rows[0][0]))
    for sort in ("-lost", "-tts"):
        seen: list[dict[str, Any]] = []
        for page in range(1, 6):
            told = fleet.plain.get("jobs", {"sort": sort, "page": page, "size": 23})
            assert told["total"] == number
            seen += told["jobs"]
        assert len({row["job"] for row in seen}) == len(seen) == number
    lost = [row["lost_gpu_h"] for row in fleet.plain.get("jobs", {"sort": "-lost", "size": 500})["jobs"]]
    assert lost == sorted(lost, reverse=True)


def test_comparing_weeks_and_teams_gives_the_numbers_of_each(fleet: Served) -> None:
    monday = FROM
    told = fleet.plain.get("compare", {"kind": "week", "a": "2026-W38", "b": "2026-W39"})
    for side, start in ((told["a"], monday), (told["b"], monday + 7 * DAY)):
        total = fleet.plain.get("fleet", {"from": start, "to": start + 7 * DAY})["total"]
        assert {n: side[n] for n in ("jobs", "nof", "ett_pct")} == {n: total[n] for n in ("jobs", "nof", "ett_pct")}
    window = {"from": FROM, "to": TO}
    told = fleet.plain.get("compare", {"kind": "team", "a": "ads", "b": "feed", **window})
    groups = {g["key"]: g for g in fleet.plain.get("fleet", window)["groups"]}
    assert told["a"]["lost_gpu_h"] == groups["ads"]["lost_gpu_h"]
    assert told["b"]["components"] == groups["feed"]["components"]
    job = fleet.plain.get("compare", {"kind": "job", "a": "worked-example", "b": "hang-then-timeout"})
    assert job["a"]["ett_pct"] == pytest.approx(fleet.plain.get("jobs/worked-example")["row"]["ett_pct"])


def test_there_is_no_before_of_which_only_a_part_is_told(fleet: Served, store: Store) -> None:
    ((first, team),) = store.query(
        "SELECT min(toUnixTimestamp(hour)) * 1000000, (SELECT max(team) FROM jobs WHERE team != '') "
        "FROM rollup_hours WHERE parts > 0"
    ).rows
    length = 12 * HOUR
    for begin, whole in ((int(str(first)), True), (int(str(first)) - HOUR, False)):
        asked = {"from": begin + length, "to": begin + 2 * length}
        told = fleet.plain.get("fleet", asked)
        assert (told["before"] is not None) == whole
        assert any(group["before_lost_gpu_h"] is not None for group in told["groups"]) == whole
        one = fleet.plain.get(f"teams/{team}", asked)
        assert whole or one["before"] is None
