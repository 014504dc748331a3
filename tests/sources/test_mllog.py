"""MLPerf logs.

Origin of the samples: the first is the end of a run of the reference DLRM that Intel's end-to-end AI optimization kit
shows (times and epochs as there, the begin rebuilt by hand: only its last lines are shown); the second is AMD's
BERT-L run of MLPerf training 5.0 as its README shows it (run_start, the evaluations and the stop; samples as
epoch_num).
"""

import json
from typing import Any

import pytest

from support.imported import Imported

T0 = 1_671_571_700_000


def entry(ms: int, key: str, value: Any = None, prefix: str = "", **metadata: Any) -> str:
    kind = {"t": "INTERVAL_START", "p": "INTERVAL_END"}.get(key[-1], "POINT_IN_TIME")
    body = {"namespace": "", "time_ms": ms, "event_type": kind, "key": key, "value": value}
    return f"{prefix}:::MLLOG {json.dumps({**body, 'metadata': {'file': 'x.py', 'lineno': 1, **metadata}})}\n"


def test_a_dlrm_run_that_converges() -> None:
    log = (
        entry(T0, "submission_benchmark", "dlrm")
        + entry(T0 + 1_000, "init_start")
        + "ray-training | [0] Finished training it 16/150 of epoch 0, 461.06 ms/it, loss 0.47\n"
        + entry(T0 + 61_000, "init_stop", prefix="ray-training  | [0] ")
        + entry(T0 + 61_000, "run_start", prefix="ray-training  | [0] ")
        # 76.234 s of training to epoch 1.0, 1.971 s of evaluation, then it stops.
        + entry(1_671_571_837_234, "eval_start", prefix="ray-training  | [0] ", epoch_num=1.0000076351505636)
        + entry(1_671_571_839_204, "eval_accuracy", 0.7925, prefix="ray-training  | [0] ", epoch_num=1.0000076351505636)
        + entry(1_671_571_839_205, "eval_stop", prefix="ray-training  | [0] ", epoch_num=1.0000076351505636)
        + entry(1_671_571_839_205, "run_stop", prefix="ray-training  | [0] ", status="success")
    )
    found = Imported("auto", log)
    assert found.report.kind == "mllog"
    job = found.job
    # E2E from the first line (T0) to run_stop: 139.205 s. In the loop from 61 s: 76.234 s of new data, 1.971 s
    # evaluation.
    assert job.e2e_s == pytest.approx(139.205)
    assert job.tts_s == pytest.approx(61.0)
    assert job.effective_s == pytest.approx(76.234)
    assert job.ett_pct == pytest.approx(100 * 76.234 / 139.205)
    assert job.components["wasted_training"] == pytest.approx(1.971)
    assert job.components["trainer_init"] == pytest.approx(60.0)
    assert (job.nof, job.ttr_s, job.status, job.model) == (0, [], "succeeded", "dlrm")
    assert {"position_is_epoch", "no_submit", "no_gpus"} <= found.flags
    assert job.labels["import"] == "mllog"
    assert "position_is_epoch" in job.labels["import_flags"].split(",")


def test_a_bert_run_with_positions_in_samples_of_many_evaluations() -> None:
    start = 1_744_838_717_800
    log = (
        entry(start - 90_000, "init_start")
        + entry(start, "init_stop")
        + entry(start, "run_start")
        + entry(start, "epoch_start", first_epoch_num=1)
        + entry(1_744_839_123_410, "eval_accuracy", 0.7197, epoch_num=2_030_855)
        + entry(1_744_839_180_558, "eval_accuracy", 0.7209, epoch_num=2_320_253)
        + entry(1_744_839_180_559, "block_stop", first_epoch_num=1)
        + entry(1_744_839_180_559, "run_stop", status="success")
    )
    found = Imported("mllog", log, gpus=8, team="amd")
    job = found.job
    # 90 s init, then 405.610 s and 57.148 s of new samples; the last millisecond has none.
    assert job.tts_s == pytest.approx(90.0)
    assert job.effective_s == pytest.approx(405.610 + 57.148)
    assert job.e2e_s == pytest.approx(90.0 + 462.759)
    assert job.ett_pct == pytest.approx(100 * 462.758 / 552.759)
    assert (job.nof, job.gpus, job.team) == (0, 8, "amd")
    assert "no_gpus" not in job.labels["import_flags"]


Steps = list[tuple[int, str, dict[str, Any]]]


def test_a_run_that_was_aborted_and_one_after_it_are_two_jobs() -> None:
    steps: Steps = [
        (0, "init_start", {}),
        (10_000, "init_stop", {}),
        (10_000, "run_start", {}),
        (70_000, "block_stop", {"step_num": 100}),
        (80_000, "run_stop", {"status": "aborted"}),
        (200_000, "init_start", {}),
        (210_000, "run_start", {}),
        (310_000, "block_stop", {"step_num": 100}),
        (310_000, "run_stop", {"status": "success"}),
    ]
    log = "".join(entry(T0 + at, key, **more) for at, key, more in steps)
    jobs = Imported("mllog", log, batch=4).jobs
    assert set(jobs) == {"run", "run#2"}
    assert (jobs["run"].nof, jobs["run"].status) == (1, "failed")
    # 60 s up to the block; the 10 s after it brought nothing that is known.
    assert jobs["run"].effective_s == 60.0
    assert (jobs["run#2"].nof, jobs["run#2"].effective_s) == (0, 100.0)


def test_one_that_dies_and_comes_back_in_the_same_log_has_two_attempts() -> None:
    steps: Steps = [(0, "init_start", {}), (10, "run_start", {}), (110, "block_stop", {"samples_count": 100})]
    again: Steps = [(200, "init_start", {}), (230, "run_start", {}), (330, "block_stop", {"samples_count": 200})]
    end: Steps = [(330, "run_stop", {"status": "success"})]
    found = Imported("mllog", "".join(entry(T0 + at * 1000, key, **more) for at, key, more in steps + again + end))
    job = found.job
    # It died after 110 s, and trained again at 230 s: TTR 120 s. It began at 0 again, and half of what it did was
    # redone.
    assert (job.attempts, job.nof, job.tts_s, job.ttr_s) == (2, 1, 10.0, [120.0])
    assert job.stages["wasted_training.rework"] == 50.0
    assert job.effective_s == 100.0 + 50.0
    assert "inferred_end" in job.flags
    assert "counted_attempts" in found.flags


def test_several_ranks_say_the_same() -> None:
    steps: Steps = [(0, "init_start", {}), (10, "init_stop", {}), (10, "run_start", {})]
    steps += [(110, "block_stop", {"samples_count": 100}), (110, "run_stop", {"status": "success"})]
    log = "".join(
        entry(T0 + at * 1000 + rank, key, prefix=f"{rank}: ", **more) for at, key, more in steps for rank in range(3)
    )
    found = Imported("mllog", log)
    assert (found.job.attempts, found.job.nof) == (1, 0)
    assert found.job.effective_s == pytest.approx(100.0, abs=0.01)
    assert "several_ranks" in found.flags


def test_what_is_broken_is_refused_with_its_line_and_the_rest_counts() -> None:
    good = entry(T0, "init_start") + entry(T0 + 5_000, "run_start")
    bad = [
        entry(0, "block_stop", samples_count=5),
        ":::MLLOG {not json\n",
        ':::MLLOG {"key": "x"}\n',
        ':::MLLOG {"key": "x", "time_ms": 12}\n',
    ]
    tail = entry(T0 + 9_000, "block_stop", samples_count=9)
    text = (good + "".join(bad) + tail).encode() + b"\xff\xfe noise\n" + b':::MLLOG {"namespace": "", "time_ms": 16715'
    found = Imported("mllog", text)
    assert [refusal.line for refusal in found.report.doubts.refused] == [3, 4, 5, 6, 9]
    assert found.report.refused == 5
    assert {"zero_time", "invalid_utf8", "truncated", "no_end"} <= found.flags
    assert found.job.effective_s == 4.0


def test_every_event_names_its_place() -> None:
    found = Imported("mllog", "chatter\n" + entry(T0, "init_start"), name="logs/result_0.txt")
    assert {told.place for told in found.told} == {"logs/result_0.txt:2"}
    assert {event.job for event in found.events} == {"logs/result_0"}
