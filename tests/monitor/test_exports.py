"""Files to take away open where they are meant to, and do no harm there."""

import csv
import io
import json
from typing import Any, Final

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from ettwatch_monitor.api.gauges import MOST_TEAMS, gauges
from ettwatch_monitor.api.shapes import Fleet, Group
from ettwatch_monitor.api.tablefile import table_file
from ettwatch_monitor.queries.fleet import EMPTY
from support.monitor import FROM, TO, Served

WINDOW: Final = {"from": FROM, "to": TO}


def test_a_trace_nests_and_holds_the_whole_timeline(fleet: Served) -> None:
    line = fleet.plain.get("jobs/worked-example/timeline")
    told = json.loads(fleet.plain.ask("export/jobs/worked-example/trace.json").body)
    events: list[dict[str, Any]] = told["traceEvents"]
    charged = [event for event in events if event["ph"] == "X" and event["pid"] == 1]
    assert sum(event["dur"] for event in charged) == line["t1_us"] - line["t0_us"]
    assert len([event for event in events if event["ph"] == "X"]) == len(line["segments"]) + len(line["phases"])
    assert len([event for event in events if event["ph"] == "i"]) == len(line["marks"])
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            ends = tracks.setdefault((event["pid"], event["tid"]), [])
            ends.append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        for at, (start, end) in enumerate(spans):
            for other_start, other_end in spans[at + 1 :]:
                apart = other_start >= end or other_end <= start
                inside = start <= other_start and other_end <= end
                assert apart or inside


@pytest.mark.parametrize("name", ["jobs", "fleet", "stages", "series"])
def test_csv_and_parquet_hold_the_same(fleet: Served, name: str) -> None:
    params = {**WINDOW, "team": "ads"}
    rows = list(csv.DictReader(io.StringIO(fleet.plain.ask(f"export/{name}.csv", params).body.decode())))
    table = pq.read_table(io.BytesIO(fleet.plain.ask(f"export/{name}.parquet", params).body))
    assert table.num_rows == len(rows) > 0
    assert table.column_names == list(rows[0])
    assert fleet.plain.ask(f"export/{name}.exe", params).status == 422


def test_the_jobs_of_a_file_are_those_of_the_list(fleet: Served) -> None:
    told = fleet.plain.get("jobs", {**WINDOW, "team": "ads", "size": 500})
    rows = list(
        csv.DictReader(io.StringIO(fleet.plain.ask("export/jobs.csv", {**WINDOW, "team": "ads"}).body.decode()))
    )
    assert [row["job"] for row in rows] == [row["job"] for row in told["jobs"]]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    told = table_file([{"name": text, text: 1.5}], "csv").decode()
    cells = next(iter(csv.reader(io.StringIO(told.split("\r\n", 1)[1], newline=""))))
    assert cells[0].startswith("'")
    assert table_file([{"number": -1.5}], "csv") == b"number\r\n-1.5\r\n"


def test_metrics_have_a_bounded_number_of_labels(fleet: Served) -> None:
    assert fleet.plain.ask("/metrics").status == 200
    groups = [
        Group(key=f'team "{n}"\n', lost_gpu_h=1, before_lost_gpu_h=None, figures=EMPTY, components={})
        for n in range(500)
    ]
    told = Fleet.model_validate(
        {
            "window": {"from_us": 0, "to_us": 1},
            "total": EMPTY.model_dump(),
            "before": None,
            "components": {"scheduling": 2.5},
            "stages": [],
            "by": "team",
            "groups": [group.model_dump() for group in groups],
            "statuses": {"training": 3},
            "as_of_us": None,
        }
    )
    text = gauges(told, 2).decode()
    teams = [line for line in text.splitlines() if line.startswith("ettwatch_fleet_team_lost_gpu_hours{")]
    assert len(teams) == MOST_TEAMS + 1
    assert sum(float(line.rsplit(" ", 1)[1]) for line in teams) == 500
    assert "ettwatch_fleet_alerts_firing 2.0" in text
    assert "ett_ratio" not in text
