"""Events of torchelastic, DLRover, one-logger, ml-goodput-measurement and AI-Hypercomputer's resiliency.

Origin of the samples: torchelastic's fields as its agent makes them (torch 2.13, agent/server/api.py; `timestamp` is
0 there); DLRover's as its 0.6.1 writes them (event.py, predefined/trainer.py); one-logger's as its FileExporter 2.3.1
wrote them in a run made for this test, with its times stretched; ml-goodput-measurement's as its recorder writes
them, with the times of its own tests (5 steps of 3 s, 5 s of start-up, 5 s more in the first step) and of a
disruption; resiliency's are the first minutes of the log in its own tests (112 nodes, three starts), of which a few
nodes are kept.
"""

import json
from typing import Any

import pytest

from support.imported import Imported


def elastic(time: str, state: str, restarts: int, source: str = "WORKER", rank: int | None = 0, **more: Any) -> str:
    metadata = {
        "run_id": more.pop("run_id", "ads-7"),
        "global_rank": rank,
        "group_rank": 0,
        "worker_id": None if rank is None else str(1000 + rank),
        "role": "default",
        "hostname": "n1",
        "state": state,
        "total_run_time": 0,
        "rdzv_backend": "c10d",
        "raw_error": None,
        "metadata": "{}",
        "agent_restarts": restarts,
        "duration_ms": None,
    } | more
    event = {"name": f"torchelastic.worker.status.{state}", "source": source, "timestamp": 0, "metadata": metadata}
    return f"{time} {json.dumps(event)}\n"


ERROR = json.dumps(
    {"message": {"message": "torch.OutOfMemoryError: CUDA out of memory.", "extraInfo": {"py_callstack": ""}}}
)


def test_a_job_that_is_restarted_once_by_its_agent() -> None:
    log = (
        elastic("2025-11-03 10:00:05,000", "RENDEZVOUS", 0, "AGENT", None, duration_ms=5000.0)
        + elastic("2025-11-03 10:00:06,000", "START", 0, rank=0)
        + elastic("2025-11-03 10:00:06,100", "START", 0, rank=1)
        # There is no word of the failure: only that it starts again.
        + elastic("2025-11-03 10:20:00,000", "RENDEZVOUS", 1, "AGENT", None, duration_ms=10000.0)
        + elastic("2025-11-03 10:20:01,000", "START", 1, rank=0)
        + elastic("2025-11-03 11:00:00,000", "SUCCEEDED", 1, rank=0)
        + elastic("2025-11-03 11:00:02,000", "SUCCEEDED", 1, "AGENT", None)
    )
    found = Imported("auto", log)
    assert found.report.kind == "torchelastic"
    job = found.job
    # The first rendezvous ended at 10:00:05 and took 5 s: it began at 10:00:00. Over at 11:00:02.
    assert (job.job, job.attempts, job.nof, job.status) == ("ads-7", 2, 1, "succeeded")
    assert job.e2e_s == 3602.0
    assert job.stages["hardware_setup.rendezvous"] == 15.0
    # Nothing is told of training: no ETT, no TTS, no TTR.
    assert (job.ett_pct, job.tts_s, job.ttr_s) == (0.0, None, [])
    assert "inferred_end" in job.flags
    assert {event.source for event in found.events if event.kind == "attempt_started"} == {"launcher"}


def test_a_job_that_fails_with_its_error() -> None:
    log = elastic("[2025-11-03T10:00:00Z]", "START", 0).replace("[", "", 1).replace("]", "", 1)
    log += elastic("2025-11-03T10:30:00Z", "FAILED", 0, raw_error=ERROR, metadata=json.dumps({"exit_code": [1]}))
    log += elastic("2025-11-03T10:30:00Z", "TERMINATED", 0, rank=1)
    log += elastic("2025-11-03T10:30:01Z", "FAILED", 0, "AGENT", None, raw_error="Traceback: ChildFailedError")
    found = Imported("torchelastic", log)
    assert (found.job.nof, found.job.e2e_s, found.job.status) == (1, 1801.0, "failed")
    first, second = found.of("attempt_ended")
    assert (first["cause"], first["exit_code"], first["rank"]) == ("gpu_memory", 1, 0)
    assert second["cause"] == "unknown"


def test_times_of_torchelastic_around_or_nowhere() -> None:
    event = elastic("", "START", 0).strip()
    wrapped = json.dumps({"@timestamp": "2025-11-03T10:00:00.5Z", "message": event})
    found = Imported("torchelastic", wrapped + "\n" + event + "\n" + json.dumps({"time": 1762164000, "log": event}))
    assert [start["ts"] for start in found.of("attempt_started")] == [1_762_164_000_000_000, 1_762_164_000_500_000]
    assert found.report.doubts.refused[0].line == 2
    assert "zero_time" in found.flags


def dlrover(at: str, name: str, kind: str, event_id: str = "e1", pid: str = "100", **content: Any) -> str:
    return f"[2025-03-01T{at}] [{pid}] [{event_id}] [AtorchTrainerV2] [{name}] [{kind}] {json.dumps(content)}\n"


DLROVER = (
    dlrover("12:00:00.000000", "#start", "INSTANT")
    + dlrover("12:00:05.000000", "#init", "BEGIN", "i1")
    + dlrover("12:00:10.000000", "#load_ckpt", "BEGIN", "l1")
    + dlrover("12:00:30.000000", "#load_ckpt", "END", "l1")
    + dlrover("12:01:00.000000", "#init", "END", "i1")
    + dlrover("12:01:00.000000", "#train", "BEGIN", "t1")
    + dlrover("12:01:00.000000", "#step", "BEGIN", "s1", global_step=1)
    + dlrover("12:01:10.000000", "#step", "END", "s1", global_step=1)
    + dlrover("12:01:10.000000", "#step", "BEGIN", "s2", global_step=2)
    + dlrover("12:01:20.000000", "#step", "END", "s2", global_step=2)
    + dlrover("12:01:20.000000", "#save", "BEGIN", "v1", global_step=2)
    + dlrover("12:01:25.000000", "#save", "END", "v1", global_step=2)
    + dlrover("12:01:25.000000", "#persist_ckpt", "BEGIN", "p1", global_step=2, path="/c", size=10)
    + dlrover("12:01:25.000000", "#step", "BEGIN", "s3", global_step=3)
    + dlrover("12:01:35.000000", "#step", "END", "s3", global_step=3)
    + dlrover("12:01:36.000000", "#persist_ckpt", "END", "p1", global_step=2, path="/c", size=10)
)


def test_a_run_of_dlrover() -> None:
    found = Imported("auto", DLROVER + dlrover("12:01:40.000000", "#finish", "INSTANT"), name="job/events_0.log")
    assert found.report.kind == "dlrover"
    job = found.job
    # 100 s. Starts 12:00:00, first step 12:01:00. Three steps of 10 s; 5 s of saving, and 5 s from the last step to
    # the end.
    assert (job.e2e_s, job.tts_s, job.effective_s) == (100.0, 60.0, 30.0)
    assert (job.ett_pct, job.nof, job.ttr_s) == (30.0, 0, [])
    assert job.stages["wasted_training.checkpoint_save"] == 5.0
    assert job.stages["trainer_init.checkpoint_load"] == 20.0
    (durable,) = found.of("checkpoint_durable")
    assert (durable["step"], durable["bytes"]) == (2, 10)
    assert job.components["shutdown"] == 5.0


def test_a_run_of_dlrover_that_is_restarted_and_the_older_form() -> None:
    again = DLROVER.replace("T12:", "T13:").replace("[100]", "[200]")
    # The same, as JSON, and in the form without a pid.
    text = "".join(
        json.dumps(
            {
                "pid": "100",
                "event_id": part[2],
                "event_time": part[0].strip("["),
                "target": part[3],
                "name": part[4],
                "event_type": part[5],
                "content": json.loads(line.split("] ")[-1]),
            }
        )
        + "\n"
        for line in DLROVER.splitlines()
        for part in [line.split("] [")]
        for part in [[piece.split("] ")[0] for piece in part]]
    )
    found = Imported("dlrover", text + again, name="events_3.log")
    job = found.job
    assert (job.attempts, job.nof) == (2, 1)
    # Interrupted at 12:01:35, trains again at 13:01:00: 3565 s. It begins at step 0 again: all of it was done before.
    assert job.ttr_s == [3565.0]
    assert job.stages["wasted_training.rework"] == 30.0
    assert {event.rank for event in found.events if event.kind == "progress"} == {3}
    # While it is open, the second from its last step to its last word counts.
    old = Imported("dlrover", DLROVER.replace("[100] ", ""), name="events_3.log")
    assert old.job.effective_s == 31.0


def goodput(**entry: Any) -> str:
    return json.dumps({"job_name": "maxtext-1", **entry}) + "\n"


START = 1_704_070_800.0


def steps(first: int, at: float, count: int, seconds: float) -> str:
    return "".join(goodput(step_count=first + n, step_start_time=at + n * seconds) for n in range(count))


def test_entries_of_goodput_without_a_disruption() -> None:
    """Its own test: program start-up 5 s (TPU 1 s, preparation 2 s, data 2 s), 5 steps of 3 s, the first 5 s longer."""
    log = (
        goodput(job_start_time=START)
        + goodput(tpu_init_start_time=START)
        + goodput(tpu_init_end_time=START + 1)
        + goodput(training_prep_start_time=START + 1)
        + goodput(training_prep_end_time=START + 3)
        + goodput(data_loading_start_time=START + 3)
        + goodput(data_loading_end_time=START + 5)
        + goodput(step_count=0, step_start_time=START + 5)
        + steps(1, START + 13, 4, 3)
        + goodput(job_end_time=START + 25)
    )
    found = Imported("auto", log)
    assert found.report.kind == "mlgoodput"
    job = found.job
    # 25 s. Steps 0 to 3 are known to be done when steps 1 to 4 start: 8 + 3 + 3 + 3 = 17 s. When step 4 ended is not
    # told.
    assert (job.e2e_s, job.tts_s, job.effective_s) == (25.0, 5.0, 17.0)
    assert job.ett_pct == 68.0
    assert job.stages["trainer_init.device_init"] == 1.0
    assert job.stages["trainer_init.pre_train"] == 2.0
    assert job.stages["trainer_init.get_first_batch_data"] == 2.0
    assert job.components["shutdown"] == 3.0
    assert (job.nof, job.ttr_s, job.status) == (0, [], "succeeded")


def test_a_disruption_that_others_count_as_productive() -> None:
    """Steps 0 to 4 of 3 s, 103 s down, and on at step 5: the outage is no training."""
    log = goodput(job_start_time=START) + steps(0, START + 5, 5, 3)
    log += goodput(job_start_time=START + 115) + steps(5, START + 120, 3, 3) + goodput(job_end_time=START + 129)
    found = Imported("mlgoodput", log)
    job = found.job
    # Known advances: 12 s before, 6 s after. It was interrupted at 17 s and trained again at 120 s.
    assert (job.effective_s, job.ttr_s, job.nof, job.attempts) == (18.0, [103.0], 1, 2)
    assert job.ett_pct == pytest.approx(100 * 18 / 129)
    assert "counted_attempts" in found.flags


def test_goodput_out_of_cloud_logging_with_checkpoints_and_custom_events() -> None:
    told: list[dict[str, Any]] = [
        {"job_start_time": START},
        {"step_count": 0, "step_start_time": START + 10},
        {"step_count": 1, "step_start_time": START + 20},
        {"custom_badput_event_type": "eval step", "custom_badput_event_start_time": START + 20},
        {"custom_badput_event_type": "eval step", "custom_badput_event_end_time": START + 26},
        {
            "event_type": "save",
            "step": 1,
            "checkpoint_manager_blocking_start_time": START + 26,
            "checkpoint_manager_blocking_duration_secs": 4,
        },
        {"step_count": 2, "step_start_time": START + 40},
        {"job_end_time": START + 40},
        {"job_start_time": 0.0},
        {"surprise": 1},
    ]
    text = json.dumps(
        [{"jsonPayload": {"job_name": "j", **entry}, "timestamp": "2024-01-01T00:00:00Z"} for entry in told],
        indent=2,
    )
    found = Imported("auto", text)
    job = found.job
    assert job.stages["wasted_training.eval_step"] == 6.0
    assert job.stages["wasted_training.checkpoint_save"] == 4.0
    assert job.effective_s == 10.0 + 20.0 - 10.0
    assert {"zero_time", "unknown_word"} <= found.flags


def resiliency(time: str, event: str, **more: Any) -> str:
    told = {"job_name": "goodput-n112", "event_type": event, "timestamp": f"2025-04-02T{time}", **more}
    return json.dumps(told) + "\n"


NODES = (
    resiliency("06:08:24.318726", "job_started", node_rank=0.0)
    + resiliency("06:08:28.667556", "job_started", node_rank=100.0)
    + resiliency("06:08:31.866984", "job_started", node_rank=59.0)
    + resiliency("06:08:31.618124", "job_started", node_rank=83.0)
    + resiliency("06:10:12.976033", "checkpoint_loaded", step=40.0)
    + resiliency("06:15:03.113616", "checkpoint_saved", step=60.0)
    + resiliency("06:17:41.756049", "checkpoint_saved", step=80.0)
    + resiliency("06:20:28.414493", "checkpoint_saved", step=100.0)
    + resiliency("06:22:51.059183", "checkpoint_saved", step=120.0)
    + resiliency("06:24:20.607650", "job_started", node_rank=59.0)
    + resiliency("06:24:20.605866", "job_started", node_rank=83.0)
    + resiliency("06:24:21.358582", "job_started", node_rank=0.0)
    + resiliency("06:26:06.357562", "checkpoint_loaded", step=120.0)
    + resiliency("06:26:49.868968", "job_started", node_rank=59.0)
    + resiliency("06:26:50.184468", "job_started", node_rank=0.0)
)


def test_the_log_of_resiliencys_own_tests() -> None:
    found = Imported("auto", NODES)
    assert found.report.kind == "resiliency"
    job = found.job
    # 06:08:24.318726 to 06:26:50.184468. Trained from the load at 06:10:12.976033 to the last save at 06:22:51.059183.
    assert job.e2e_s == pytest.approx(1105.865742)
    assert job.tts_s == pytest.approx(108.657307)
    assert job.effective_s == pytest.approx(758.083150)
    assert job.ett_pct == pytest.approx(100 * 758.083150 / 1105.865742)
    # The second start loaded a checkpoint and died before the next save; the third is open.
    assert (job.attempts, job.nof, job.ttr_s) == (3, 2, [])
    assert {"zone_assumed", "position_is_saved_step", "counted_attempts", "out_of_order", "no_submit"} <= found.flags


def test_a_job_of_resiliency_that_was_scheduled_and_terminated() -> None:
    log = (
        resiliency("06:00:00.000000", "user_scheduled")
        + NODES
        + resiliency("06:28:00.000000", "job_terminated", node_rank=0)
    )
    log += resiliency("06:30:00.000000", "job_started", node_rank=0) + resiliency("06:40:00.000000", "user_terminated")
    found = Imported("resiliency", log)
    job = found.job
    # Waited 504.318726 s before the first node; between the last words of an attempt and the next start 89.546683 s
    # (from
    # 06:22:51.059183), 43.511406 s (from 06:26:06.357562) and, after job_terminated, 120 s.
    assert job.components["scheduling"] == pytest.approx(504.318726 + 89.546683 + 43.511406 + 120)
    # What was terminated started again, so it had failed; the user ended the rest.
    assert (job.nof, job.status, job.e2e_s) == (3, "cancelled", 2400.0)
    assert "no_submit" not in found.flags


def one(kind: str, at: int, name: str = "", span: str = "s", **attributes: Any) -> str:
    stamp: dict[str, Any] = {"timestamp_msec": 1_795_999_413_209 + at}
    times: dict[str, Any] = {"name": "x", "attributes": stamp}
    if kind == "event":
        event: dict[str, Any] = {"name": name, "attributes": times["attributes"] | attributes}
        return json.dumps({"type": "event", "span_id": span, "event": event, "count": 1, "pid": 1}) + "\n"
    body: dict[str, Any] = {"type": kind, "id": span, "name": name, "attributes": attributes, "count": 1, "pid": 1}
    if kind == "complete":
        body["start_event"] = {"attributes": {"timestamp_msec": 1_795_999_413_209 + attributes.pop("since")}}
        body["stop_event"] = times
    else:
        body[f"{kind}_event"] = times
    return json.dumps(body) + "\n"


ONE = (
    one("start", 0, "application", "a")
    + one("event", 0, "one_logger_initialization", "a", world_size=2, rank=0, node_name="vm")
    + one("complete", 5000, "distributed_code_initialization", "d", since=3000)
    + one("complete", 9000, "model_initialization", "m", since=5000)
    + one("start", 10000, "training_loop", "t", train_iterations_start=0, train_samples_start=0)
    + one(
        "event", 12000, "training_metrics_update", "t", current_iteration=1, train_samples_start=0, num_train_samples=16
    )
    + one(
        "event", 14000, "training_metrics_update", "t", current_iteration=3, train_samples_start=0, num_train_samples=32
    )
    + one("start", 14000, "checkpoint_save_sync", "c", current_iteration=4)
    + one("event", 17000, "save_checkpoint_success", "c", current_iteration=4, productive_train_samples=32)
    + one("stop", 17000, "checkpoint_save_sync", "c")
    + one("complete", 18000, "validation_loop", "v", since=17000)
    + one(
        "event", 20000, "training_metrics_update", "t", current_iteration=5, train_samples_start=0, num_train_samples=48
    )
)


def test_spans_of_one_logger() -> None:
    found = Imported("auto", ONE + one("stop", 20000, "training_loop", "t") + one("stop", 21000, "application", "a"))
    assert found.report.kind == "onelogger"
    job = found.job
    # 21 s, the loop from 10 to 20 s, of which 3 s save and 1 s validates.
    assert (job.e2e_s, job.tts_s, job.effective_s) == (21.0, 10.0, 6.0)
    assert job.ett_pct == pytest.approx(100 * 6 / 21)
    assert job.stages["wasted_training.checkpoint_save"] == 3.0
    assert job.stages["wasted_training.evaluation"] == 1.0
    assert job.stages["trainer_init.process_group_init"] == 2.0
    assert (job.nof, job.ttr_s, job.gpus, job.status) == (0, [], 2, "succeeded")
    (durable,) = found.of("checkpoint_durable")
    assert durable["position"] == 32


def test_spans_of_one_logger_that_stop_in_the_middle() -> None:
    error = one("event", 20500, "error", "t", error_message="NCCL error: unhandled system error").replace(
        '"type": "event"', '"type": "application_error"'
    )
    later = ONE.replace("17959994", "17959995").replace('"train_samples_start": 0', '"train_samples_start": 32')
    found = Imported("onelogger", ONE + error + '{"type":"stop","id":"t","na\n' + later)
    job = found.job
    # 100 s later (one digit of the milliseconds) it goes on at sample 32: interrupted at 20 s, trains at 110 s.
    assert (job.attempts, job.nof, job.ttr_s) == (2, 1, [90.0])
    (end,) = found.of("attempt_ended")
    assert (end["outcome"], end["cause"]) == ("failed", "network")
    assert found.report.refused == 1
