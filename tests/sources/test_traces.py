"""Traces of whole clusters, and compile records.

Origin of the samples: Philly's example entry of its README (`application_1506638472019_14199`: two attempts on 8
GPUs) and a second job rebuilt after its notes (an attempt without an end, a job without attempts); Acme's four
example rows of its README; TORCH_TRACE records of PyTorch 2.13 on the CPU, made for this test (two compilations of
one function, backend aot_eager), shortened to the records that matter, and the metrics record of an older trace
without chromium events.
"""

import json

import pytest

from support.imported import Imported

GPUS = [f"gpu{n}" for n in range(8)]
PHILLY = [
    {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1506638472019_14199",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:09",
                "end_time": "2017-10-07 01:13:23",
                "detail": [{"ip": "m47", "gpus": GPUS}],
            },
            {
                "start_time": "2017-10-07 01:13:30",
                "end_time": "2017-10-09 06:53:12",
                "detail": [{"ip": "m412", "gpus": GPUS}],
            },
        ],
        "submitted_time": "2017-10-07 01:11:39",
        "user": "ce2f4c",
    },
    {
        "status": "Killed",
        "vc": "11cb48",
        "jobid": "application_1506638472019_10258",
        "attempts": [
            {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:30:00", "detail": []},
            {"start_time": "2017-10-07 02:40:00", "end_time": None, "detail": [{"ip": "m1", "gpus": ["gpu0"]}]},
        ],
        "submitted_time": "2017-10-07 01:50:00",
        "user": "x",
    },
    {"status": "Failed", "vc": "v", "jobid": "never", "attempts": [], "submitted_time": "2017-10-07 01:00:00"},
]


def test_the_example_of_the_philly_trace() -> None:
    found = Imported("auto", json.dumps(PHILLY, indent=4), zone="America/Los_Angeles")
    assert found.report.kind == "philly"
    job = found.jobs["application_1506638472019_14199"]
    # Submitted 01:11:39, over two days, 5 h 41 min 33 s later; waited 30 s and 7 s.
    assert job.e2e_s == 2 * 86400 + 5 * 3600 + 41 * 60 + 33
    assert job.components["scheduling"] == 37
    # Recovery from the end of the first attempt (01:13:23) to the end of all.
    assert job.recovery_s == job.e2e_s - 30 - 74
    assert (job.nof, job.attempts, job.gpus, job.team, job.status) == (1, 2, 8, "ee9e8c", "succeeded")
    assert (job.ett_pct, job.tts_s, job.ttr_s) == (0.0, None, [])
    assert {"zone_given", "no_cause", "no_positions"} <= found.flags


def test_jobs_of_the_philly_trace_that_are_not_whole() -> None:
    found = Imported("philly", json.dumps(PHILLY), zone="America/Los_Angeles")
    running = found.jobs["application_1506638472019_10258"]
    # Still running when the trace was taken: known until its second start, 50 min after it was submitted.
    assert (running.status, running.attempts, running.nof, running.e2e_s) == ("recovering", 2, 1, 3000.0)
    assert running.gpus == 1
    assert found.jobs["never"].status == "pending"
    assert "no_end" in found.jobs["application_1506638472019_10258"].labels["import_flags"]


SEREN = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,\
2023-03-01 00:20:51+08:00,117,32,936.0
5778469,u5907,1,8,128,Other,COMPLETED,2023-03-01 00:23:58+08:00,2023-03-01 00:24:11+08:00,\
2023-03-01 01:09:04+08:00,2693,13,21544.0
"""
KALOS = """\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,\
fail_time,stop_time,duration,queue,gpu_time
dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,\
2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0
dlc1t2ypl09b8qtp,uf794,8,64,960,1000,100.0,Other,CANCELLED,2023-05-17 11:28:42+00:00,2023-05-17 11:28:54+00:00,\
2023-05-17 11:30:04+00:00,,2023-05-17 11:30:04+00:00,82,12.0,5248.0
"""


def test_the_examples_of_seren() -> None:
    found = Imported("auto", SEREN)
    assert found.report.kind == "acme"
    failed, done = found.jobs["5778432"], found.jobs["5778469"]
    # queue 32 + duration 117, and 13 + 2693: the trace's own columns.
    assert (failed.e2e_s, failed.components["scheduling"], failed.nof, failed.status) == (149.0, 32.0, 1, "failed")
    assert (done.e2e_s, done.components["scheduling"], done.nof, done.status) == (2706.0, 13.0, 0, "succeeded")
    # Its gpu_time: what was held.
    assert (failed.gpu_held_s, done.gpu_held_s) == (936.0, 21544.0)
    assert (done.ett_pct, done.tts_s, done.ttr_s) == (0.0, None, [])


def test_the_examples_of_kalos() -> None:
    jobs = Imported("acme", KALOS).jobs
    failed, stopped = jobs["dlctk696s0jbvitv"], jobs["dlc1t2ypl09b8qtp"]
    # There the column duration counts from the submission: 18 s are 10 s of queue and 8 s of work.
    assert (failed.e2e_s, failed.components["scheduling"], failed.nof, failed.gpus) == (18.0, 10.0, 1, 64)
    assert (stopped.e2e_s, stopped.components["scheduling"], stopped.nof, stopped.status) == (
        82.0,
        12.0,
        0,
        "cancelled",
    )


def test_rows_of_acme_that_are_broken() -> None:
    head = SEREN.splitlines()[0]
    text = f"{head}\n1,u,1,8,128,Other,EXOTIC,2023-03-01 00:18:22+08:00,,,1,2,3\nshort,row\n,u,1,8,128,O,F,,,,1,2,3\n"
    text += "2,u,1,8,1,O,COMPLETED,yesterday,2023-03-01 00:18:22+08:00,2023-03-01 00:19:22+08:00,1,2,3\n"
    found = Imported("acme", text)
    assert found.report.refused == 3
    assert found.jobs["1"].status == "pending"
    assert found.jobs["2"].e2e_s == 60.0
    assert "state EXOTIC" in found.report.doubts.words


def record(head: dict[str, object], payload: dict[str, object] | None = None) -> str:
    line = f"V1130 00:39:55.261000 23854 torch/_dynamo/utils.py:2350] {json.dumps(head)}\n"
    if payload is not None:
        line += "".join(f"\t{part}\n" for part in json.dumps(payload, indent=0).splitlines())
    return line


def mark(name: str, phase: str, ts: float, compile_id: int = 0) -> str:
    head = {"chromium_event": {}, "frame_id": 0, "frame_compile_id": compile_id, "attempt": 0, "has_payload": "x"}
    return record(head, {"name": name, "ts": ts, "args": {}, "ph": phase, "cat": "dynamo_timed", "tid": 0, "pid": 0})


BASE = 1_795_999_195_260_598.2
TRACE = (
    mark("dynamo", "B", BASE)
    + record({"artifact": {"name": "torch_version", "encoding": "json"}, "has_payload": "y"}, {"oss": True})
    + mark("entire_frame_compile", "B", BASE + 6_091)
    + mark("backend_compile", "B", BASE + 79_902)
    + mark("backend_compile", "E", BASE + 1_717_485)
    + mark("entire_frame_compile", "E", BASE + 1_756_261)
    + record({"compilation_metrics": {"start_time": 1795999195.26, "entire_frame_compile_time_s": 1.75}})
    + mark("dynamo", "E", BASE + 1_760_422)
    + mark("dynamo", "B", BASE + 1_818_738, 1)
    + mark("backend_compile", "B", BASE + 1_900_000, 1)
    + mark("backend_compile", "E", BASE + 2_031_258, 1)
    + mark("dynamo", "E", BASE + 2_131_672, 1)
)


def test_compile_records_of_a_trace() -> None:
    name = "trace/dedicated_log_torch_trace_rank_3_fd3gxfac.log"
    found = Imported("auto", TRACE, name=name)
    assert found.report.kind == "torchtrace"
    assert {event.rank for event in found.events if event.kind == "phase_started"} == {3}
    job = found.job
    # First compilation 1.760422 s, of which 1.637583 s in the backend; the second is a recompilation of 0.312934 s, of
    # which 0.131258 s in the backend.
    assert job.stages["pt2_compilation.aot_autograd"] == pytest.approx(1.637583 + 0.131258, abs=1e-5)
    assert job.stages["pt2_compilation.dynamo"] == pytest.approx(1.760422 - 1.637583, abs=1e-5)
    assert job.stages["pt2_compilation.recompile"] == pytest.approx(0.312934 - 0.131258, abs=1e-5)
    # Spans only: no progress, so no ETT, no TTS; and nothing of an end.
    assert (job.ett_pct, job.tts_s, job.nof, job.status) == (0.0, None, 0, "starting")


def test_an_older_trace_has_metrics_only() -> None:
    metrics = {"start_time": 1717083507.123456, "entire_frame_compile_time_s": 12.5, "co_name": "forward"}
    line = record({"compilation_metrics": metrics, "rank": 1, "frame_id": 0, "frame_compile_id": 0})
    bad = record({"compilation_metrics": {"start_time": None}})
    found = Imported("torchtrace", line + bad + 'V1130 00:39:55.2 1 torch/x.py:1] {"compil')
    assert found.job.stages == {"pt2_compilation": 12.5}
    assert found.report.refused == 2
    assert found.of("phase_started")[0]["ts"] == 1_717_083_507_123_456
