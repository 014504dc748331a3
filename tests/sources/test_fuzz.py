"""Whatever the bytes are, a reader raises nothing, tells only events that decode, and says what it refused.

The samples are rebuilt by hand after the formats that the modules of the readers name.
"""

import json
import random
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ettwatch_sources import KIND_NAMES
from support.imported import Imported
from support.mutate import ODD, changed, places

MAPPING = yaml.safe_load("""
version: 1
job: {field: run}
time: {field: t, unit: s}
events:
  - {when: {e: step}, kind: progress, set: {position: {field: n, times: 2}}}
  - {when: {e: span}, kind: phase, start: {field: t, unit: s}, duration: {field: d}, set: {phase: {field: p}}}
  - {when: {e: end}, kind: attempt_ended, set: {outcome: succeeded, exit_code: {field: n}}}
""")
ELASTIC = {
    "name": "torchelastic.worker.status.FAILED",
    "source": "AGENT",
    "timestamp": 1762164000000,
    "metadata": {
        **{"run_id": "r", "global_rank": 0, "hostname": "n", "state": "FAILED", "rdzv_backend": "c10d"},
        **{"raw_error": '{"message": {"message": "boom"}}', "metadata": '{"exit_code": [1]}', "agent_restarts": 1},
    },
}
ONE = [
    {
        "type": "start",
        "id": "a",
        "name": "application",
        "start_event": {"attributes": {"timestamp_msec": 1762164000000}},
    },
    {
        "type": "event",
        "span_id": "t",
        "event": {
            "name": "training_metrics_update",
            "attributes": {"timestamp_msec": 1762164009000, "current_iteration": 3, "num_train_samples": 8},
        },
    },
    {
        "type": "complete",
        "id": "m",
        "name": "model_initialization",
        "start_event": {"attributes": {"timestamp_msec": 1762164001000}},
        "stop_event": {"attributes": {"timestamp_msec": 1762164002000}},
    },
]
PHILLY = [
    {
        "jobid": "a",
        "status": "Pass",
        "vc": "v",
        "submitted_time": "2017-10-07 01:11:39",
        "attempts": [
            {"start_time": "2017-10-07 01:12:09", "end_time": None, "detail": [{"ip": "m", "gpus": ["gpu0"]}]}
        ],
    }
]
SACCT = {
    "meta": {"slurm": {}},
    "jobs": [
        {
            "job_id": 7,
            "cluster": "c",
            "state": {"current": ["NODE_FAIL"], "reason": "NodeDown"},
            "time": {"submission": 1762164000, "eligible": 1762164000, "start": 1762164060, "end": 1762167600},
            "exit_code": {"return_code": {"set": True, "number": 1}, "signal": {"id": {"set": False, "number": 0}}},
            "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 8}]},
            "array": {"job_id": 0, "task_id": {"set": False}},
            "steps": [{"state": ["FAILED"]}],
        }
    ],
}
METRICS = {
    "compilation_metrics": {"start_time": 1762164000.5, "entire_frame_compile_time_s": 2.5},
    "frame_compile_id": 0,
}
CHROMIUM = {"name": "dynamo", "ts": 1762164000260598.2, "ph": "B"}


def jsons(kind: str, *values: Any, before: str = "", lines: bool = True) -> tuple[str, str, list[Any]]:
    return kind, before, list(values) if lines else [values[0]]


STRUCTURED = [
    jsons("mllog", {"key": "run_start", "time_ms": 1762164000000, "metadata": {}}, before=":::MLLOG "),
    jsons(
        "mllog", {"key": "eval_stop", "time_ms": 1762164009000, "metadata": {"samples_count": 5}}, before="0: :::MLLOG "
    ),
    jsons("torchelastic", ELASTIC, before="2025-11-03 10:00:00,000 "),
    jsons(
        "dlrover",
        {"event_time": "2025-03-01T12:00:00.5", "name": "#step", "event_type": "END", "content": {"global_step": 3}},
    ),
    jsons(
        "mlgoodput",
        {"job_name": "j", "step_count": 3, "step_start_time": 1762164000.5},
        {"job_name": "j", "job_end_time": 1},
    ),
    jsons(
        "resiliency",
        {"event_type": "checkpoint_saved", "step": 4.0, "timestamp": "2025-04-02T06:15:03.1", "job_name": "j"},
    ),
    jsons("onelogger", *ONE),
    jsons("philly", PHILLY, lines=False),
    jsons("slurm", SACCT, lines=False),
    jsons(
        "mapped", {"e": "step", "t": 1762164000, "n": 3}, {"e": "span", "t": 1762164000, "d": 3, "p": "trainer_init"}
    ),
    jsons("torchtrace", METRICS, before="V1130 00:39:55.26 1 torch/_dynamo/utils.py:2350] "),
]
TEXTS = [
    (
        "slurm",
        "JobID|State|Submit|Eligible|Start|End|ExitCode\n7|NODE_FAIL|2025-11-03T10:00:00|Unknown|1762164000|None|1:9\n",
    ),
    (
        "slurm",
        "JobId=9 JobName=a b UserId=x(1) JobState=FAILED SubmitTime=1762164000 StartTime=1762164060 EndTime=1762164090",
    ),
    ("dlrover", '[2025-03-01T12:00:00.5] [100] [e] [T] [#save] [BEGIN] {"global_step": 2}\n'),
    ("torchtitan", "[rank0]:[titan] 2025-06-04 08:51:48,074 - root - INFO - step:  1  loss: 12.2\n"),
    (
        "megatron",
        " [2024-09-03 15:54:54] iteration 10/ 500 | consumed samples: 10240 | elapsed time per iteration (ms): 13 |\n",
    ),
    ("acme", "job_id,user,node_num,gpu_num,state,submit_time\n1,u,1,8,FAILED,2023-03-01 00:18:22+08:00\n"),
    ("torchtrace", f'V1130 00:39:55.26 1 torch/x.py:1] {{"chromium_event": {{}}}}\n\t{json.dumps(CHROMIUM)}\n'),
]


def read(kind: str, data: bytes) -> Imported:
    return Imported(kind, data, mapping=MAPPING)


@pytest.mark.parametrize("sample", STRUCTURED, ids=lambda sample: sample[0])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_values_of_other_types(sample: tuple[str, str, list[Any]], data: st.DataObject) -> None:
    kind, before, values = sample
    lines = []
    for value in values:
        new = value
        for _ in range(data.draw(st.integers(1, 3))):
            new = changed(new, data.draw(st.sampled_from(places(new))), data.draw(ODD))
        lines.append(before + json.dumps(new))
    found = read(kind, "\n".join([*lines, *(before + json.dumps(value) for value in values), ""]).encode())
    assert found.told or found.report.refused or kind in {"torchelastic", "slurm"}


@pytest.mark.parametrize(("kind", "text"), TEXTS, ids=[kind for kind, _ in TEXTS])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_bytes_that_are_changed_moved_and_cut(kind: str, text: str, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray((text * 3).encode())
    for _ in range(chance.randint(0, 6)):
        at = chance.randrange(len(data))
        match chance.randint(0, 4):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randint(1, 20)]
            case 2:
                data[at:at] = data[chance.randrange(len(data)) :][:30]
            case 3:
                data[at:at] = chance.choice([b"9" * 5000, b".", b"\xc2\xb2", b"-"])
            case _:
                data[at:at] = bytes(chance.randrange(256) for _ in range(3))
        if not data:
            break
    read(kind, bytes(data[: chance.randint(0, len(data))]))


@pytest.mark.parametrize("kind", sorted(KIND_NAMES))
@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes(kind: str, data: bytes) -> None:
    read(kind, data)


@pytest.mark.parametrize("sample", STRUCTURED, ids=lambda sample: sample[0])
def test_the_samples_themselves_give_events(sample: tuple[str, str, list[Any]]) -> None:
    kind, before, values = sample
    assert read(kind, "\n".join(before + json.dumps(value) for value in values).encode()).told


@pytest.mark.parametrize(("kind", "text"), TEXTS, ids=[kind for kind, _ in TEXTS])
def test_the_texts_themselves_give_events(kind: str, text: str) -> None:
    assert read(kind, text.encode()).told
