"""The sizing guide: its tables are made from the figures that were measured, by the arithmetic that it tells."""

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def sizing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sizing", ROOT / "scripts" / "sizing.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["sizing"] = module  # dataclasses and named tuples look for it there
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_writes(sizing: ModuleType) -> None:
    assert sizing.main(["--check"]) == 0


def test_a_page_that_is_out_of_date_is_seen(
    sizing: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = {"results": {"singles": {"worker_events_per_s": 12_345}}}
    (tmp_path / "pipeline.json").write_text(json.dumps(results))
    monkeypatch.setattr(sizing, "RESULTS", tmp_path / "pipeline.json")
    assert sizing.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err


def test_a_measured_figure_takes_the_place_of_the_assumed_one(sizing: ModuleType) -> None:
    found = sizing.figures({"singles": {"worker_events_per_s": 12_345}})
    assert found["worker_rate"] == (12_345.0, True)
    assert found["memory_job"] == (8_192, False)
    table = sizing.tables({"singles": {"worker_events_per_s": 12_345}})["figures"]
    assert "| `worker_rate` | 12,345 | measured |" in table
    assert "| `memory_job` | 8,192 | assumed |" in table


def test_the_arithmetic_is_that_of_the_page(sizing: ModuleType) -> None:
    figure = {name: each.assumed for name, each in sizing.FIGURES.items()}
    found = sizing.need(100_000, figure)
    jobs, machines = 12_500, 12_500
    rate = jobs / 15 + machines / 60 + jobs * 2 * 400 / 86_400
    assert found.jobs == jobs
    assert found.rate == pytest.approx(rate)
    assert found.workers == max(2, math.ceil(4 * rate / figure["worker_rate"]))
    assert found.clickhouse_disk == pytest.approx(rate * 86_400 * 400 * figure["row_bytes"])
    kept = rate * figure["event_bytes"] * (2 + figure["result_factor"]) * 86_400 * 7
    assert found.kafka_disk == pytest.approx(3 * (kept + 3 * jobs * figure["state_job"]))


def test_a_larger_fleet_needs_no_less(sizing: ModuleType) -> None:
    figure = {name: each.assumed for name, each in sizing.FIGURES.items()} | {"worker_rate": 500}
    small, large = sizing.need(10_000, figure), sizing.need(100_000, figure)
    assert large.workers > small.workers
    assert large.partitions >= 4 * large.workers
    assert large.partitions & (large.partitions - 1) == 0
    assert all(more >= less for more, less in zip(large[2:], small[2:], strict=True) if more != large.worker_memory)


def test_a_page_without_a_place_is_refused(sizing: ModuleType) -> None:
    with pytest.raises(ValueError, match="no place for the table"):
        sizing.written("# nothing here\n", {"needs": "| |"})
