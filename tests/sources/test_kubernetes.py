"""Kubernetes: objects as they change, folded to events.

Origin of the samples: the conditions and reasons are those of the API types of Kueue, JobSet, the training operator,
Volcano and Kubernetes, in the order in which their controllers set them; times by hand.
"""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ettwatch_sources.kubernetes.words import TABLES
from support import kubernetes_objects as k
from support.imported import folded
from support.kubernetes_fold import Cluster, us
from support.kubernetes_objects import condition
from support.mutate import ODD_VALUES, changed, places

JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"


def kueue_life() -> Iterable[tuple[str, str, dict[str, Any]]]:
    """A JobSet that waits 10 min, is preempted after an hour, comes back, loses a node, and is done."""
    admitted = condition("Admitted", "09:10:00", "Admitted")
    evicted = condition("Evicted", "10:10:00", "Preempted", "Preempted to accommodate a workload")
    preempted = condition("Preempted", "10:10:00", "InClusterQueue", "by ads/big")
    again = condition("Admitted", "10:30:00", "Admitted")
    yield "09:00:00", "JobSet", k.jobset("llm", "09:00:00")
    yield "09:00:01", "Workload", k.workload("jobset-llm", "llm", "JobSet", "09:00:00")
    yield "09:10:00", "Workload", k.workload("jobset-llm", "llm", "JobSet", "09:00:00", admitted)
    yield "09:10:05", "Pod/JobSet", k.pod("llm-w-0-0", JOBSET_LABEL, "llm", "09:10:05")
    yield (
        "10:10:00",
        "Workload",
        k.workload("jobset-llm", "llm", "JobSet", "09:00:00", {**admitted, "status": "False"}, evicted, preempted),
    )
    yield "10:10:02", "JobSet", k.jobset("llm", "09:00:00", condition("Suspended", "10:10:01", "SuspendedJobs"))
    yield "10:30:00", "Workload", k.workload("jobset-llm", "llm", "JobSet", "09:00:00", again, evicted, preempted)
    yield (
        "10:30:10",
        "Pod/JobSet",
        k.pod("llm-w-0-1", JOBSET_LABEL, "llm", "10:30:10", labels={"jobset.sigs.k8s.io/restart-attempt": "0"}),
    )
    yield (
        "11:00:00",
        "Pod/JobSet",
        k.pod(
            "llm-w-0-1",
            JOBSET_LABEL,
            "llm",
            "10:30:10",
            phase="Failed",
            conditions=[condition("DisruptionTarget", "11:00:00", "DeletionByTaintManager", "Taint manager: deleting")],
            labels={"jobset.sigs.k8s.io/restart-attempt": "0"},
        ),
    )
    yield (
        "11:02:00",
        "Pod/JobSet",
        k.pod("llm-w-0-2", JOBSET_LABEL, "llm", "11:02:00", labels={"jobset.sigs.k8s.io/restart-attempt": "1"}),
    )
    done = condition("Completed", "12:00:00", "AllJobsCompleted", "jobset completed successfully")
    yield "12:00:00", "JobSet", k.jobset("llm", "09:00:00", done, restarts=1)
    finished = condition("Finished", "12:00:01", "Succeeded", "jobset completed successfully")
    yield "12:00:01", "Workload", k.workload("jobset-llm", "llm", "JobSet", "09:00:00", again, finished)


def test_a_jobset_under_kueue() -> None:
    cluster = Cluster()
    for clock, kind, item in kueue_life():
        cluster.saw(clock, kind, item)
    job = cluster.job
    assert job.job == "ads/llm/uid-llm"
    # 09:00 to 12:00. Queued 10 min, then 20 min after the preemption, and 2 min from the node's failure to its next
    # pod.
    assert (job.e2e_s, job.components["scheduling"]) == (10_800.0, (10 + 20 + 2) * 60)
    assert cluster.ends() == [(0, "preempted", "capacity"), (1, "failed", "hardware"), (2, "succeeded", "unknown")]
    assert (job.attempts, job.nof, job.nof_preempted, job.nof_infra, job.status) == (3, 2, 1, 2, "succeeded")
    # Recovery from 10:10 to the end. Nothing is told of training.
    assert (job.recovery_s, job.ett_pct, job.tts_s, job.ttr_s) == (110 * 60, 0.0, None, [])
    # Two groups of four pods with eight GPUs each.
    assert (job.gpus, job.team, job.cluster) == (64, "ads", "c1")
    assert [e.trigger for e in cluster.events if e.kind == "attempt_started"] == ["initial", "preemption", "failure"]
    (submitted,) = (e for e in cluster.events if e.kind == "job_submitted")
    assert submitted.eligible_ts == us("09:00:00")
    assert not cluster.folder.unknown.words


def test_what_is_seen_again_is_told_once() -> None:
    cluster, twice = Cluster(), Cluster()
    for clock, kind, item in kueue_life():
        cluster.saw(clock, kind, item)
        for _ in range(3):
            twice.saw(clock, kind, item)
    assert [event.id for event in cluster.events] == [event.id for event in twice.events]


def test_a_watcher_that_was_away_counts_on_and_tells_the_end() -> None:
    steps = list(kueue_life())
    first = Cluster()
    for clock, kind, item in steps[:4]:
        first.saw(clock, kind, item)
    state = first.folder.tracker.dump()
    second = Cluster()
    second.folder.tracker.load(state)
    # It comes back after the preemption and the new admission, and sees only how things are now.
    second.saw("10:30:00", "JobSet", k.jobset("llm", "09:00:00"))
    for clock, kind, item in steps[6:]:
        second.saw(clock, kind, item)
    whole = [*first.events, *second.events]
    job = next(iter(folded(whole).values())).summary
    assert (job.attempts, job.nof, job.status) == (3, 2, "succeeded")


def test_a_workload_that_is_seen_before_its_job() -> None:
    cluster = Cluster()
    admitted = condition("Admitted", "09:10:00", "Admitted")
    cluster.saw("09:10:00", "Workload", k.workload("w", "llm", "JobSet", "09:00:00", admitted))
    assert cluster.events == []
    cluster.saw("09:10:01", "JobSet", k.jobset("llm", "09:00:00"))
    assert [event.kind for event in cluster.events] == ["job_submitted", "attempt_started"]


def test_a_workload_without_a_job_that_is_watched_speaks_for_itself() -> None:
    cluster = Cluster()
    admitted, finished = condition("Admitted", "09:10:00"), condition("Finished", "10:00:00", "Failed", "boom")
    cluster.saw("10:00:00", "Workload", k.workload("w", "ray-1", "RayCluster", "09:00:00", admitted, finished)).later(
        "10:01:00"
    )
    assert (cluster.job.job, cluster.job.e2e_s, cluster.job.status) == ("ads/ray-1/uid-ray-", 3600.0, "failed")


def test_a_pytorchjob_that_restarts_with_the_cause_of_its_pod() -> None:
    cluster = Cluster()
    created, running = condition("Created", "09:00:00"), condition("Running", "09:05:00")
    cluster.saw("09:05:00", "PyTorchJob", k.pytorchjob("ctr", "09:00:00", created, running, startTime=k.at("09:00:01")))
    killed = k.terminated("09:30:00", 137, "OOMKilled")
    label = "training.kubeflow.org/job-name"
    restarting = condition("Restarting", "09:30:02", "PyTorchJobRestarting", "job is restarting: 1 Worker failed")
    stopped = {**running, "status": "False"}
    again = k.pytorchjob("ctr", "09:00:00", created, stopped, restarting)
    cluster.saw("09:30:02", "PyTorchJob", again)
    # The job's word comes first, its pod says why a moment later.
    assert cluster.ends() == []
    cluster.saw("09:30:03", "Pod/PyTorchJob", k.pod("ctr-worker-1", label, "ctr", "09:05:00", **killed))
    assert cluster.ends() == [(0, "failed", "host_memory")]
    (end,) = (event for event in cluster.events if event.kind == "attempt_ended")
    assert (end.exit_code, end.signal, end.ts) == (137, 9, us("09:30:02"))
    assert "ctr-worker-1" in (end.message or "")
    back = condition("Running", "09:33:00")
    cluster.saw("09:33:00", "PyTorchJob", k.pytorchjob("ctr", "09:00:00", created, restarting, back))
    failed = condition("Failed", "10:00:00", "PyTorchJobFailed", "backoff limit")
    last = k.pytorchjob("ctr", "09:00:00", created, {**back, "status": "False"}, restarting, failed)
    cluster.saw("10:00:00", "PyTorchJob", last).later("10:00:20")
    job = cluster.job
    # Waited 5 min, then from 09:30:02 to 09:33. The second attempt failed for a reason that nobody told.
    assert (job.components["scheduling"], job.e2e_s, job.nof, job.gpus) == (300 + 178, 3600.0, 2, 32)
    assert cluster.ends()[1] == (1, "failed", "unknown")
    assert job.status == "failed"


def test_volcanos_phases() -> None:
    cluster = Cluster()
    steps = [("Pending", "09:00:00"), ("Inqueue", "09:01:00"), ("Running", "09:04:00")]
    steps += [("Restarting", "09:20:00"), ("Pending", "09:20:05"), ("Running", "09:25:00"), ("Completed", "10:00:00")]
    for end in range(1, len(steps) + 1):
        cluster.saw(steps[end - 1][1], "VolcanoJob", k.volcano_job("v", "09:00:00", *steps[:end])).later("10:30:00")
    job = cluster.job
    assert (job.attempts, job.nof, job.e2e_s, job.components["scheduling"]) == (2, 1, 3600.0, (4 + 5) * 60)
    assert (job.gpus, job.status) == (16, "succeeded")
    # Seen only when it was over, it says the same: its conditions have the times of all phases.
    once = Cluster().saw("10:00:00", "VolcanoJob", k.volcano_job("v", "09:00:00", *steps)).later("10:30:00")
    assert [event.id for event in once.events] == [event.id for event in cluster.events]


def test_a_batch_job_and_one_that_is_part_of_a_jobset() -> None:
    cluster = Cluster()
    failed = condition("Failed", "09:40:00", "DeadlineExceeded", "Job was active longer than specified deadline")
    cluster.saw("09:40:00", "Job", k.batch_job("j", "09:00:00", failed, startTime=k.at("09:00:02")))
    inner = k.batch_job(
        "llm-w-0", "09:00:00", startTime=k.at("09:00:02"), meta={"ownerReferences": [{"kind": "JobSet"}]}
    )
    cluster.saw("09:40:00", "Job", inner)
    assert (cluster.job.nof, cluster.job.e2e_s, cluster.job.gpus) == (1, 2400.0, 8)
    assert cluster.ends() == [(0, "failed", "timeout")]


def test_a_job_that_is_deleted_while_it_runs() -> None:
    cluster = Cluster()
    running = condition("Running", "09:05:00")
    cluster.saw("09:05:00", "PyTorchJob", k.pytorchjob("ctr", "09:00:00", running))
    gone = k.pytorchjob("ctr", "09:00:00", running, meta={"deletionTimestamp": k.at("09:20:00")})
    cluster.saw("09:20:30", "PyTorchJob", gone, deleted=True)
    assert (cluster.job.status, cluster.job.e2e_s, cluster.ends()) == (
        "cancelled",
        1200.0,
        [(0, "cancelled", "unknown")],
    )


def test_names_and_teams_of_labels() -> None:
    cluster = Cluster()
    labels = {"ettwatch.io/job": "ctr-ranker", "ettwatch.io/team": "ranking", "ettwatch.io/model": "dlrm"}
    cluster.saw("09:00:00", "JobSet", k.jobset("llm", "09:00:00", meta={"annotations": labels}))
    assert (cluster.job.job, cluster.job.team, cluster.job.model) == ("ctr-ranker", "ranking", "dlrm")


def test_words_that_are_not_known_are_kept() -> None:
    cluster = Cluster()
    odd = condition("Evicted", "10:00:00", "SolarFlare", "it happens")
    admitted = condition("Admitted", "09:10:00", "Admitted")
    cluster.saw("09:00:00", "JobSet", k.jobset("llm", "09:00:00"))
    cluster.saw("10:00:00", "Workload", k.workload("w", "llm", "JobSet", "09:00:00", admitted, odd))
    assert cluster.folder.unknown.words == {"reason of Evicted (Kueue): SolarFlare": 1}
    (end,) = (event for event in cluster.events if event.kind == "attempt_ended")
    assert (end.outcome, end.cause) == ("preempted", "unknown")
    assert end.message == "SolarFlare: it happens"


@pytest.mark.parametrize("reason", sorted(TABLES["reason of Evicted (Kueue)"]))
def test_every_eviction_ends_an_attempt(reason: str) -> None:
    cluster = Cluster()
    cluster.saw("09:00:00", "JobSet", k.jobset("llm", "09:00:00"))
    conditions = [condition("Admitted", "09:10:00"), condition("Evicted", "10:00:00", reason)]
    cluster.saw("10:00:00", "Workload", k.workload("w", "llm", "JobSet", "09:00:00", *conditions)).later("10:05:00")
    word = TABLES["reason of Evicted (Kueue)"][reason]
    assert cluster.ends() == [(0, word.outcome, word.cause)]


def test_objects_that_are_not_whole_tell_nothing() -> None:
    cluster = Cluster()
    broken: list[tuple[str, dict[str, Any]]] = [
        ("JobSet", {}),
        ("JobSet", {"metadata": {"uid": "x"}}),
        ("PyTorchJob", {"metadata": None, "spec": [], "status": "?"}),
        ("VolcanoJob", {"metadata": {"uid": "v", "creationTimestamp": "never"}, "spec": {}}),
        ("Workload", {"metadata": {"ownerReferences": []}}),
        ("Pod/JobSet", {"metadata": {"labels": {JOBSET_LABEL: "nobody"}}}),
        ("Job", {"metadata": {"uid": "j", "creationTimestamp": k.at("09:00:00")}, "status": {"conditions": [None, 5]}}),
    ]
    for kind, item in broken:
        cluster.saw("09:00:00", kind, item)
    assert [event.kind for event in cluster.events] == ["job_submitted"]


SAMPLES = [
    ("TrainJob", k.trainjob("t", "09:00:00", condition("Failed", "09:40:00", "DeadlineExceeded"))),
    (
        "RayJob",
        k.rayjob(
            "r",
            "09:00:00",
            "Retrying",
            "09:30:00",
            failed=1,
            reason="AppFailed",
            rayJobInfo={"startTime": k.at("09:10:00")},
            rayClusterName="r-1",
        ),
    ),
    *((kind, item) for _, kind, item in kueue_life()),
    ("PyTorchJob", k.pytorchjob("p", "09:00:00", condition("Running", "09:05:00"), startTime=k.at("09:00:01"))),
    ("VolcanoJob", k.volcano_job("v", "09:00:00", ("Running", "09:05:00"), ("Restarting", "09:10:00"))),
    (
        "Job",
        k.batch_job("j", "09:00:00", condition("Failed", "09:40:00", "DeadlineExceeded"), startTime=k.at("09:01:00")),
    ),
    ("Pod/JobSet", k.pod("x", JOBSET_LABEL, "llm", "09:05:00", **k.terminated("09:30:00", 137, "OOMKilled"))),
]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_objects_with_odd_parts_raise_nothing(seed: int) -> None:
    chance = random.Random(seed)
    cluster = Cluster()
    for _ in range(5):
        kind, item = chance.choice(SAMPLES)
        for _ in range(chance.randint(0, 3)):
            item = changed(item, chance.choice(places(item)[1:]), chance.choice(ODD_VALUES))
        cluster.saw("10:00:00", kind, item)
    cluster.later("11:00:00")
    folded(cluster.events)
