"""Slurm's accounting.

Origin of the samples: the columns are those of `sacct --parsable2`; the requeue, whose second record has a new time
of submission, is what the manual says of `--duplicates`; the JSON is that of data_parser 0.0.40 (sacct --json, Slurm
23.11); the one-liner is that of `scontrol --oneliner show job`. Values are rebuilt by hand.
"""

import json
from typing import Any

import pytest

from ettwatch_sources.slurm.words import REASONS, STATES, reason_of, state_of
from support.imported import Imported

HEADER = (
    "JobID|JobName|Account|User|Partition|Cluster|State|Reason|Submit|Eligible|Start|End|ExitCode|AllocTRES|NodeList\n"
)
GPUS = "billing=64,cpu=64,gres/gpu:h100=16,gres/gpu=16,mem=1T,node=2"


def row(job: str, state: str, submit: str, start: str, end: str, **more: str) -> str:
    day = "2025-11-03T"
    times = [day + text if text[0].isdigit() else text for text in (submit, more.pop("eligible", submit), start, end)]
    told = {"name": "train", "reason": "None", "exit": "0:0", "tres": GPUS, "nodes": "n[1-2]"} | more
    cells = [job, told["name"], "ads", "ann", "gpu", "c1", state, told["reason"], *times, told["exit"], told["tres"]]
    return "|".join([*cells, told["nodes"]]) + "\n"


REQUEUED = (
    HEADER
    + row("77", "NODE_FAIL", "10:00:00", "10:10:00", "11:00:00", eligible="10:05:00", reason="NodeDown", exit="1:0")
    + row("77", "PREEMPTED", "11:00:00", "11:20:00", "12:00:00", eligible="11:02:00")
    + row("77", "COMPLETED", "12:00:00", "12:05:00", "13:00:00")
    + row("77.batch", "COMPLETED", "12:00:00", "12:05:00", "13:00:00")
)


def test_requeues_under_one_id_are_attempts_of_one_job() -> None:
    found = Imported("auto", REQUEUED, zone="UTC")
    assert found.report.kind == "slurm"
    job = found.job
    # T0 is when it was eligible, 10:05; E2E to 13:00 is 175 min. Two attempts were cut short.
    assert job.job == "c1-77"
    assert job.e2e_s == 175 * 60
    assert (job.attempts, job.nof, job.nof_infra, job.nof_preempted) == (3, 2, 2, 1)
    # Waits: 5 min before the first, 20 min before the second, 5 min before the third.
    assert job.components["scheduling"] == (5 + 20 + 5) * 60
    # Queued: 10:05 to 10:10, 11:02 to 11:20, 12:00 to 12:05; the 2 min before it was eligible again are scheduling.
    assert job.stages["scheduling.queue_wait"] == (5 + 18 + 5) * 60
    # Slurm tells nothing of training: it cannot be effective, and there is no time to start.
    assert (job.ett_pct, job.tts_s, job.ttr_s) == (0.0, None, [])
    # Recovery: from the end of one attempt to the end of all: 11:00 to 13:00.
    assert job.recovery_s == 120 * 60
    assert (job.gpus, job.team, job.cluster, job.status) == (16, "ads", "c1", "succeeded")
    assert job.labels["job_name"] == "train"
    ends = found.of("attempt_ended")
    assert [(end["outcome"], end["cause"]) for end in ends] == [
        ("failed", "hardware"),
        ("preempted", "capacity"),
        ("succeeded", "unknown"),
    ]
    assert [start.get("trigger") for start in found.of("attempt_started")] == ["initial", "failure", "preemption"]
    assert {event["source"] for event in [*ends, *found.of("job_submitted")]} == {"scheduler"}
    assert {"no_positions", "whole_seconds", "zone_given"} <= found.flags
    assert "no_end" not in found.flags


def test_with_the_trainers_own_events_the_same_job_has_its_times() -> None:
    """A job whose trainer spoke, too: the scheduler's end counts, and TTS and TTR are there."""
    found = Imported("slurm", REQUEUED, zone="UTC")
    log = []
    for attempt, begin, first, last in ((0, 10, 20, 50), (1, 80, 90, 115), (2, 125, 130, 170)):
        for minute, kind, position in ((first, "training_started", 0), (last, "progress", 10_000 * (attempt + 1))):
            at = f"2025-11-03T{10 + minute // 60:02}:{minute % 60:02}:00Z"
            log.append({"t": at, "k": kind, "p": position if kind == "progress" else 10_000 * attempt, "a": attempt})
        del begin
    mapping = {
        "version": 1,
        "job": {"value": "c1-77"},
        "time": {"field": "t"},
        "attempt": {"field": "a"},
        "events": [
            {"when": {"k": kind}, "kind": kind, "set": {"position": {"field": "p"}}}
            for kind in ("training_started", "progress")
        ],
    }
    trainer = Imported("mapped", "".join(json.dumps(line) + "\n" for line in log), mapping=mapping)
    from support.imported import folded

    job = folded([*found.events, *trainer.events])["c1-77"].summary
    # Trained 30 + 25 + 40 min; E2E 175 min.
    assert job.effective_s == 95 * 60
    assert job.ett_pct == pytest.approx(100 * 95 / 175)
    # TTS: allocated 10:10, first batch 10:20. TTR: last advance 10:50 to 11:30, and 11:55 to 12:10.
    assert (job.tts_s, job.ttr_s, job.nof) == (600.0, [2400.0, 900.0], 2)


def test_an_id_that_is_given_again_is_another_job() -> None:
    text = (
        HEADER
        + row("5", "COMPLETED", "01:00:00", "01:10:00", "02:00:00")
        + row("5", "FAILED", "09:00:00", "09:10:00", "10:00:00", exit="1:0")
        + row("6", "NODE_FAIL", "01:00:00", "01:10:00", "02:00:00")
        + row("6", "COMPLETED", "09:00:00", "09:10:00", "10:00:00", name="other")
    )
    found = Imported("slurm", text, zone="UTC")
    assert set(found.jobs) == {"c1-5", "c1-5@20251103T090000", "c1-6", "c1-6@20251103T090000"}
    assert "id_recycled" in found.flags
    assert [job.nof for job in found.jobs.values()] == [0, 1, 1, 0]


def test_the_order_of_records_does_not_matter_within_an_id() -> None:
    head, *rows = REQUEUED.splitlines(keepends=True)
    ids = {event.id for event in Imported("slurm", REQUEUED, zone="UTC").events}
    turned = Imported("slurm", head + "".join([rows[2], rows[0], rows[3], rows[1]]), zone="UTC")
    assert {event.id for event in turned.events} == ids


def test_jobs_that_never_ran_still_run_or_wait() -> None:
    text = (
        HEADER
        + row("1", "CANCELLED by 1000", "01:00:00", "None", "02:00:00", nodes="None assigned", tres="")
        + row("2", "CANCELLED by 1000", "01:00:00", "02:00:00", "02:00:00", nodes="None assigned", tres="")
        + row("3", "RUNNING", "01:00:00", "01:30:00", "Unknown")
        + row("4", "PENDING", "01:00:00", "Unknown", "Unknown", reason="Priority", nodes="None assigned")
        + row("9_[3-7]", "PENDING", "01:00:00", "Unknown", "Unknown", reason="Resources")
    )
    found = Imported("slurm", text, zone="UTC")
    status = {job: (s.status, s.attempts, s.e2e_s) for job, s in found.jobs.items()}
    assert status == {
        "c1-1": ("cancelled", 0, 3600.0),
        "c1-2": ("cancelled", 0, 3600.0),
        "c1-3": ("starting", 1, 1800.0),
        "c1-4": ("pending", 0, 0.0),
    }
    assert found.report.refused == 1


def test_local_times_and_a_clock_change() -> None:
    """The night of 2 November 2025 in Los Angeles: 01:30 comes twice. UTC is 8 h later after it, 7 h before."""
    text = HEADER + "8|t|a|u|p|c|COMPLETED|None|2025-11-02T00:30:00|2025-11-02T00:30:00|"
    text += f"2025-11-02T01:30:00|2025-11-02T03:30:00|0:0|{GPUS}|n1"
    found = Imported("slurm", text + "\n", zone="America/Los_Angeles")
    assert found.job.e2e_s == 4 * 3600  # 00:30 PDT to 03:30 PST
    assert "zone_ambiguous" in found.flags
    assert "zone_assumed" in Imported("slurm", text + "\n").flags


def test_seconds_since_the_epoch_need_no_zone() -> None:
    text = "JobID|State|Submit|Eligible|Start|End|Restarts\n"
    text += "12|PREEMPTED|1762164000|1762164000|1762164600|1762167600|2\n"
    found = Imported("slurm", text)
    (start,) = found.of("attempt_started")
    assert (start["attempt"], start["ts"]) == (2, 1_762_164_600_000_000)
    assert "zone_assumed" not in found.flags


def test_a_name_with_bars_and_a_trailing_bar() -> None:
    text = "JobID|JobName|State|Submit|Start|End|\n7|a|b|c|COMPLETED|1762164000|1762164600|1762167600|\n"
    found = Imported("slurm", text)
    assert found.job.labels["job_name"] == "a|b|c"


def test_steps_say_that_a_job_was_out_of_memory() -> None:
    text = HEADER + row("3", "FAILED", "01:00:00", "01:30:00", "02:00:00", exit="1:0")
    text += row("3.0", "OUT_OF_MEMORY", "01:00:00", "01:30:00", "02:00:00", exit="0:125")
    (end,) = Imported("slurm", text, zone="UTC").of("attempt_ended")
    assert (end["cause"], end["exit_code"]) == ("host_memory", 1)
    text = HEADER + row("3", "FAILED", "01:00:00", "01:30:00", "02:00:00", exit="127:0")
    assert Imported("slurm", text, zone="UTC").of("attempt_ended")[0]["cause"] == "config"
    text = HEADER + row("3", "REQUEUED", "01:00:00", "01:30:00", "02:00:00", reason="NodeDown")
    (end,) = Imported("slurm", text, zone="UTC").of("attempt_ended")
    assert (end["outcome"], end["cause"]) == ("failed", "hardware")


def sacct_json(number: int, state: str, times: tuple[int, int, int, int], restarts: int = 0) -> dict[str, Any]:
    submit, eligible, start, end = times
    return {
        "account": "ads",
        "array": {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}},
        "association": {"account": "ads", "cluster": "c1", "user": "ann"},
        "cluster": "c1",
        "exit_code": {
            "status": ["SIGNALED"],
            "return_code": {"set": True, "infinite": False, "number": 0},
            "signal": {"id": {"set": True, "infinite": False, "number": 9}, "name": "KILL"},
        },
        "job_id": number,
        "name": "train",
        "nodes": "n1",
        "partition": "gpu",
        "qos": "normal",
        "restart_cnt": restarts,
        "state": {"current": [state], "reason": "None"},
        "time": {"submission": submit, "eligible": eligible, "start": start, "end": end, "elapsed": end - start},
        "tres": {"allocated": [{"type": "cpu", "name": "", "count": 64}, {"type": "gres", "name": "gpu", "count": 8}]},
        "user": "ann",
        "steps": [],
    }


def test_sacct_json_and_scontrol_say_the_same_as_the_table() -> None:
    s = 1_762_164_000
    told = {
        "meta": {"slurm": {"version": {"major": "23"}}},
        "jobs": [
            sacct_json(9, "NODE_FAIL", (s, s + 60, s + 120, s + 3600)),
            sacct_json(9, "COMPLETED", (s + 3600, s + 3600, s + 3900, s + 7500), 1),
            sacct_json(10, "RUNNING", (s, s, s + 5, 0)),
        ],
        "errors": [],
    }
    for text in (json.dumps(told), json.dumps(told, indent=2)):
        found = Imported("auto", text)
        assert found.report.kind == "slurm"
        job = found.jobs["c1-9"]
        # Eligible at 60 s, over at 7500 s; waits 60 s and 300 s.
        assert (job.e2e_s, job.components["scheduling"], job.nof, job.gpus) == (7440.0, 360.0, 1, 8)
        assert found.of("attempt_ended")[0]["signal"] == 9
        assert found.jobs["c1-10"].status == "starting"
    oneliner = (
        f"JobId=9 JobName=my train UserId=ann(1000) GroupId=a(1) Account=ads QOS=normal JobState=RUNNING Reason=None "
        f"Requeue=1 Restarts=1 ExitCode=0:0 SubmitTime={s + 3600} EligibleTime={s + 3600} StartTime={s + 3900} "
        f"EndTime={s + 90000} Partition=gpu NodeList=n1 NumNodes=1 TRES=cpu=64,gres/gpu=8\n"
    )
    found = Imported("auto", oneliner, cluster="c1")
    # The end of a job that runs is a forecast: it is not taken.
    assert found.of("attempt_ended") == []
    (start,) = found.of("attempt_started")
    assert (start["job"], start["attempt"], start["gpus"]) == ("c1-9", 1, 8)
    assert found.job.labels["job_name"] == "my train"


def test_json_that_is_cut_off_gives_what_stands_before() -> None:
    s = 1_762_164_000
    jobs = [sacct_json(n, "COMPLETED", (s, s, s + 5, s + 10)) for n in (1, 2, 3)]
    text = json.dumps({"jobs": jobs}, indent=1)
    found = Imported("slurm", text[: text.index('"job_id": 3')])
    assert set(found.jobs) == {"c1-1", "c1-2"}
    assert "truncated" in found.flags
    assert found.report.refused == 1


def test_words_that_are_not_known_are_kept_and_flagged() -> None:
    text = HEADER + row("3", "BRAND_NEW", "01:00:00", "01:30:00", "02:00:00", reason="SomethingElse")
    found = Imported("slurm", text, zone="UTC")
    assert set(found.report.doubts.words) == {"state BRAND_NEW", "reason SomethingElse"}
    assert "unknown_word" in found.job.labels["import_flags"]
    # An end of unknown kind is no end.
    assert found.job.status == "starting"


@pytest.mark.parametrize("state", sorted(STATES))
def test_every_state_is_read(state: str) -> None:
    end = "02:00:00" if STATES[state].outcome else "Unknown"
    found = Imported("slurm", HEADER + row("3", state, "01:00:00", "01:30:00", end), zone="UTC")
    assert not found.report.doubts.words
    assert bool(found.of("attempt_ended")) == bool(STATES[state].outcome)


def test_words_in_other_spellings() -> None:
    assert state_of("CANCELLED by 1004")[0] == "CANCELLED"
    assert state_of("CANCELLED+")[0] == "CANCELLED"
    assert state_of("NF") == state_of("NODE_FAIL")
    assert reason_of("ReqNodeNotAvail, UnavailableNodes:n[1-4]") is not None
    assert reason_of("RaisedSignal:53(Real-time_signal_19)") is not None
    assert reason_of("(Priority)") is not None
    assert reason_of("AssocGrpGRESRunMinutes") is not None
    assert reason_of("MaxGRESPerAccount") is not None
    assert reason_of("Nonsense") is None
    assert all(reason_of(word) is not None for word in REASONS)
