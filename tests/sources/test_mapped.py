"""Any CSV or JSON lines, by a mapping file.

Origin of the samples: the columns of Weights & Biases' run history (`_timestamp`, `_step`) as its export guide
describes them, and the `metrics.csv` of PyTorch Lightning's CSVLogger (epoch, step), to which a time column is added;
rows by hand.
"""

import json
from typing import Any

import pytest
import yaml

from ettwatch_sources import MappingError, parse_mapping
from support.imported import Imported

WANDB = yaml.safe_load("""
version: 1
format: jsonl
job: {field: run}
time: {field: _timestamp, unit: s}
attempt: {field: meta.restart, default: 0}
events:
  - {when: {event: begin}, kind: training_started, set: {position: {field: _step, times: 64}, report_every_s: 60}}
  - {when: {event: [step, log]}, kind: progress, set: {position: {field: _step, times: 64}, step: {field: _step}}}
  - when: {event: {matches: "^ckpt"}}
    kind: phase
    start: {field: t0, unit: s}
    duration: {field: took_ms, unit: ms}
    set: {phase: wasted_training.checkpoint_save, attrs: {value: {kind: ckpt}}}
  - {when: {event: end}, kind: attempt_ended, set: {outcome: {field: state, map: {finished: succeeded, crashed:
  failed}}}}
""")

T = 1_700_000_000


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps({"run": "r1", **row}) + "\n" for row in rows)


def test_json_lines_by_a_mapping() -> None:
    text = lines(
        {"event": "begin", "_timestamp": T + 0.5, "_step": 0},
        {"event": "step", "_timestamp": T + 10.5, "_step": 1},
        {"event": "ckpt-1", "t0": T + 10.5, "took_ms": 2500},
        {"event": "log", "_timestamp": T + 20.5, "_step": 2},
        {"event": "end", "_timestamp": T + 25.5, "state": "crashed"},
        {"event": "begin", "_timestamp": T + 60.5, "_step": 1, "meta": {"restart": 1}},
        {"event": "step", "_timestamp": T + 80.5, "_step": 3, "meta": {"restart": 1}},
        {"event": "end", "_timestamp": T + 80.5, "state": "finished", "meta": {"restart": 1}},
    )
    found = Imported("mapped", text, mapping=WANDB)
    job = found.job
    # 80 s. Attempt 0: 10 s + 7.5 s of new samples, 2.5 s saving, 5 s lost. Attempt 1 from step 1 to 3: half was done
    # before.
    assert (job.e2e_s, job.effective_s, job.nof, job.tts_s) == (80.0, 27.5, 1, 0.0)
    assert job.ett_pct == pytest.approx(100 * 27.5 / 80)
    assert job.ttr_s == [40.0]
    assert job.stages["wasted_training.rework"] == 10.0
    assert job.stages["wasted_training.checkpoint_save"] == 2.5
    assert found.of("progress")[0]["position"] == 64


LIGHTNING = yaml.safe_load("""
version: 1
format: csv
time: {field: time, unit: iso}
events:
  - {kind: progress, set: {position: {field: step}, step: {field: step}}}
""")


def test_csv_by_a_mapping() -> None:
    text = "epoch,step,time,train_loss\n0,49,2025-03-01 12:00:00,1.1\n0,99,2025-03-01 12:01:00,1.0\n"
    text += (
        '1,149,"2025-03-01 12:02:00",0.9\n1,broken,2025-03-01 12:03:00,0.9\n1,1,2,3,4,5\n1,,2025-03-01 12:04:00,0.8\n'
    )
    found = Imported("mapped", text, mapping=LIGHTNING, zone="Europe/Berlin")
    assert (found.job.effective_s, found.job.e2e_s, found.job.tts_s, found.job.nof) == (120.0, 120.0, 0.0, 0)
    assert found.job.ett_pct == 100.0
    assert [refusal.line for refusal in found.report.doubts.refused] == [5, 6, 7]
    assert found.of("progress")[0]["ts"] == 1_740_826_800_000_000  # 11:00 UTC
    assert "zone_given" in found.flags


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "version: must be 1"),
        ({"colour": 1}, "colour: no such key"),
        ({"events": []}, "events: must be a list of rules"),
        ({"events": [{"kind": "progres"}]}, "events[0].kind: must be one of"),
        ({"events": [{"kind": "progress", "set": {"speed": 1}}]}, "progress has no such field"),
        ({"events": [{"kind": "phase", "set": {"phase": "x"}}]}, "a phase needs start, and end or duration"),
        (
            {"events": [{"kind": "progress", "set": {"position": {"field": "a", "value": 1}}}]},
            "needs either field or value",
        ),
        ({"events": [{"kind": "progress", "when": {"a": {"matches": "["}}}]}, "no regular expression"),
        ({"time": {"field": "t", "unit": "min"}}, "time.unit: must be one of"),
        ({"time": None}, "time: is needed"),
    ],
)
def test_a_wrong_mapping_says_where(change: dict[str, Any], says: str) -> None:
    with pytest.raises(MappingError, match=".") as caught:
        parse_mapping({**LIGHTNING, **change})
    assert says in str(caught.value)


def test_rows_that_no_rule_takes_and_values_that_are_none() -> None:
    text = lines(
        {"event": "other", "_timestamp": T},
        {"event": "step", "_timestamp": 0, "_step": 1},
        {"event": "step", "_timestamp": "soon", "_step": 1},
        {"event": "step", "_timestamp": T * 1000, "_step": 1},
        {"event": "step", "_timestamp": T, "_step": "many"},
        {"event": "end", "_timestamp": T, "state": "odd"},
        {"event": "ckpt", "t0": T, "took_ms": -5},
    )
    found = Imported("mapped", text + "[1]\n{\n", mapping=WANDB)
    assert found.report.refused == 9
    assert found.told == []


def test_without_a_mapping_nothing_is_read() -> None:
    assert Imported("mapped", "x\n").report.refused == 1
