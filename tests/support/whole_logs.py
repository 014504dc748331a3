"""One whole log of each kind, and of each form that a kind has, from its first line to its end.

Rebuilt by hand after the formats that the modules of the readers name.
"""

import json
from datetime import UTC, datetime
from typing import Any, Final

T: Final = 1_762_164_000
"""2025-11-03 10:00:00 UTC."""


def ms(seconds: int) -> int:
    return (T + seconds) * 1000


def iso(seconds: int) -> str:
    return datetime.fromtimestamp(T + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def mllog() -> str:
    told: list[tuple[int, str, dict[str, Any]]] = [(0, "init_start", {}), (10, "init_stop", {}), (10, "run_start", {})]
    told += [(70, "block_stop", {"samples_count": 100}), (71, "eval_start", {}), (80, "eval_stop", {})]
    told += [(140, "block_stop", {"samples_count": 200}), (141, "run_stop", {"status": "success"})]
    entries = [{"time_ms": ms(at), "key": key, "value": None, "metadata": more} for at, key, more in told]
    return "".join(f":::MLLOG {json.dumps(entry)}\n" for entry in entries)


def torchelastic() -> str:
    def event(at: int, state: str, source: str = "AGENT", restarts: int = 0, **more: Any) -> dict[str, Any]:
        told = {"run_id": "r", "hostname": "n", "state": state, "rdzv_backend": "c10d", "agent_restarts": restarts}
        name = f"torchelastic.worker.status.{state}"
        return {"name": name, "source": source, "timestamp": ms(at), "metadata": told | more}

    return lines(
        event(5, "RENDEZVOUS", duration_ms=5000),
        event(600, "FAILED", "WORKER", global_rank=0, raw_error='{"message": {"message": "CUDA out of memory"}}'),
        event(615, "RENDEZVOUS", restarts=1, duration_ms=5000),
        event(1000, "SUCCEEDED", restarts=1),
    )


def dlrover() -> str:
    told: list[tuple[int, int, str, str, dict[str, Any]]] = [
        (0, 0, "#start", "INSTANT", {}),
        (1, 0, "#init", "BEGIN", {}),
        (1, 20, "#init", "END", {}),
        (2, 21, "#train", "BEGIN", {"global_step": 0}),
        (3, 60, "#step", "END", {"global_step": 5}),
        (4, 61, "#save", "BEGIN", {}),
        (4, 66, "#save", "END", {"success": True}),
        (5, 120, "#step", "END", {"global_step": 10}),
        (2, 121, "#train", "END", {}),
        (6, 122, "#finish", "INSTANT", {}),
    ]
    return "".join(f"[{iso(at)}] [100] [e{n}] [T] [{name}] [{what}] {json.dumps(c)}\n" for n, at, name, what, c in told)


def mlgoodput() -> str:
    told: list[dict[str, Any]] = [{"job_start_time": T}, {"tpu_init_start_time": T + 1}, {"tpu_init_end_time": T + 9}]
    told += [{"step_count": step, "step_start_time": T + 20 + 10 * step} for step in range(3)]
    return lines(*({"job_name": "g", **one} for one in [*told, {"job_end_time": T + 50}]))


def resiliency() -> str:
    told = [(0, "user_scheduled", None, None), (10, "job_started", 0, None), (20, "checkpoint_loaded", 0, 0)]
    told += [(120, "checkpoint_saved", 0, 100), (220, "checkpoint_saved", 0, 200), (230, "job_terminated", 0, None)]
    keys = ("timestamp", "event_type", "node_rank", "step")
    return lines(*({"job_name": "g", **dict(zip(keys, (iso(at), *more), strict=True))} for at, *more in told))


def onelogger() -> str:
    def at(seconds: int, **more: Any) -> dict[str, Any]:
        return {"attributes": {"timestamp_msec": ms(seconds), **more}}

    first = {"train_iterations_start": 0, "train_samples_start": 0}
    update = {"name": "training_metrics_update", **at(60, current_iteration=9, num_train_samples=80)}
    return lines(
        {"type": "start", "id": "a", "name": "application", "start_event": at(0)},
        {"type": "complete", "id": "m", "name": "model_initialization", "start_event": at(1), "stop_event": at(19)},
        {"type": "start", "id": "t", "name": "training_loop", "attributes": first, "start_event": at(20)},
        {"type": "event", "span_id": "t", "event": update},
        {"type": "stop", "id": "t", "stop_event": at(61)},
        {"type": "stop", "id": "a", "stop_event": at(70)},
    )


def torchtitan() -> str:
    told = [(0, "Starting job: llama"), (10, "Building model"), (30, "Training starts at step 1.")]
    told += [(40, "step:  1  loss: 12.2"), (90, "step: 10  loss: 10.2"), (95, "Saving the checkpoint (or staging)")]
    told += [
        (99, "Finished saving the checkpoint in 4 seconds."),
        (150, "step: 20  loss: 9"),
        (151, "Training completed"),
    ]
    told += [(152, "Process group destroyed")]
    clock = {at: iso(at).replace("T", " ").replace(".", ",")[:23] for at, _ in told}
    return "".join(f"[rank0]:[titan] {clock[at]} - root - INFO - {text}\n" for at, text in told)


def megatron() -> str:
    def clock(at: int) -> str:
        return iso(at).replace("T", " ")[:19]

    points = {5: "after megatron is initialized", 15: "after model, optimizer, and learning rate scheduler are built"}
    points |= {19: "after dataloaders are built", 20: "before the start of training step"}
    start = "".join(f"[{what}] datetime: {clock(at)}\n" for at, what in points.items())
    loop = "".join(
        f" [{clock(20 + 10 * n)}] iteration {10 * n:8d}/    500 | consumed samples: {640 * n:10d} | "
        "elapsed time per iteration (ms): 1000.0 | global batch size: 64 |\n"
        for n in range(1, 6)
    )
    return f"using world size: 8\n{start}{loop}[after training is done] datetime: {clock(71)}\n"


def philly() -> str:
    times = {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 02:12:09"}
    attempt = {**times, "detail": [{"ip": "m", "gpus": ["gpu0"]}]}
    jobs = [{"jobid": name, "status": status, "vc": "v", "attempts": [attempt]} for name, status in ("aP", "bF")]
    for job, status in zip(jobs, ("Pass", "Failed"), strict=True):
        job |= {"status": status, "submitted_time": "2017-10-07 01:11:39"}
    return json.dumps(jobs, indent=1) + "\n"


def acme() -> str:
    times = "2023-03-01 00:18:22+08:00,2023-03-01 00:19:22+08:00,2023-03-01 01:19:22+08:00"
    rows = "".join(f"{n},u,1,8,COMPLETED,{times}\n" for n in range(3))
    return f"job_id,user,node_num,gpu_num,state,submit_time,start_time,end_time\n{rows}"


def sacct(end: str = "") -> str:
    rows = "".join(
        f"{n}|t|COMPLETED|{T + n}|{T + n}|{T + 60 + n}|{T + 3600 + n}|0:0|gres/gpu=8{end}\n" for n in range(1, 4)
    )
    return f"JobID|JobName|State|Submit|Eligible|Start|End|ExitCode|AllocTRES{end}\n{rows}"


def scontrol(between: str = " ", after: str = "\n") -> str:
    times = f"SubmitTime={T} EligibleTime={T}{between}StartTime={T + 60} EndTime={T + 90}"
    more = ["UserId=x(1)", "JobState=FAILED Reason=NonZeroExitCode", times, "ExitCode=1:0 TRES=cpu=1,gres/gpu=8"]
    return "".join(f"JobId={n} JobName=a b{between}{between.join(more)}{after}" for n in range(1, 4))


def sacct_json(indent: int | None = 1) -> str:
    times = {"submission": T, "eligible": T, "start": T + 60, "end": T + 3600}
    held = {"allocated": [{"type": "gres", "name": "gpu", "count": 8}]}
    jobs = [
        {"job_id": n, "cluster": "c", "state": {"current": ["COMPLETED"]}, "time": times, "tres": held}
        for n in range(1, 4)
    ]
    return json.dumps({"meta": {"slurm": {}}, "jobs": jobs}, indent=indent)


def torchtrace() -> str:
    head = {"chromium_event": {}, "frame_id": 0, "frame_compile_id": 0, "rank": 0}
    told = [("dynamo", 0, "B"), ("inductor_compile", 1, "B"), ("inductor_compile", 5, "E"), ("dynamo", 9, "E")]
    return "".join(
        f"V1130 00:39:55.26 1 torch/_dynamo/utils.py:1] {json.dumps(head)}\n"
        f"\t{json.dumps({'name': name, 'ts': (T + at) * 1e6, 'ph': what})}\n"
        for name, at, what in told
    )


IN_LINES: Final = {
    "mllog": mllog(),
    "torchelastic": torchelastic(),
    "dlrover": dlrover(),
    "mlgoodput": mlgoodput(),
    "resiliency": resiliency(),
    "onelogger": onelogger(),
    "torchtitan": torchtitan(),
}
"""Kinds of which every line has its time."""

WHOLE: Final = {
    **IN_LINES,
    "megatron": megatron(),
    "philly": philly(),
    "acme": acme(),
    "slurm": sacct(),
    "slurm, parsable": sacct("|"),
    "slurm, scontrol in lines": scontrol(),
    "slurm, scontrol": scontrol("\n   ", "\n\n"),
    "slurm, JSON": sacct_json(),
    "slurm, JSON in one line": sacct_json(None),
    "torchtrace": torchtrace(),
}
"""All of them, by kind and form."""
