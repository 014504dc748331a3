"""Kubernetes: TrainJob and RayJob, and what is listed in any order.

Origin of the samples: the statuses are those that the controllers of Kubeflow's trainer (trainjob_controller.go) and of
KubeRay (rayjob_controller.go) write, in their order; times by hand.
"""

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ettwatch_schemas import decode_event
from ettwatch_sources import line_of
from ettwatch_sources.kubernetes.folder import Folder
from ettwatch_sources.kubernetes.reflector import Change
from support import kubernetes_objects as k
from support.kubernetes_fold import Cluster, us
from support.kubernetes_objects import condition

JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
RAY_LABEL = "ray.io/cluster"
PARENT = {"ownerReferences": [{"kind": "TrainJob", "name": "ft", "uid": "uid-ft", "controller": True}]}


def child(*conditions: Any) -> dict[str, Any]:
    """The job set that the trainer makes."""
    return k.jobset("ft", "09:00:01", *conditions, uid="uid-set", meta=PARENT)


def node(number: int, scheduled: str, restart: int = 0, **status: Any) -> dict[str, Any]:
    labels = {"jobset.sigs.k8s.io/restart-attempt": str(restart)}
    return k.pod(f"ft-node-0-{number}", JOBSET_LABEL, "ft", scheduled, labels=labels, **status)


def head(cluster: str, scheduled: str, **status: Any) -> dict[str, Any]:
    return k.pod(f"{cluster}-head", RAY_LABEL, cluster, scheduled, **status)


def test_a_trainjob_with_a_restart() -> None:
    cluster = Cluster()
    cluster.saw("09:00:00", "TrainJob", k.trainjob("ft", "09:00:00"))
    cluster.saw("09:00:01", "JobSet", child())
    cluster.saw("09:06:00", "Pod/JobSet", node(0, "09:06:00"))
    killed = k.terminated("09:36:00", 137, "OOMKilled")
    cluster.saw("09:36:00", "Pod/JobSet", node(0, "09:06:00", phase="Failed", **killed))
    cluster.saw("09:37:00", "Pod/JobSet", node(1, "09:37:00", restart=1))
    done = condition("Complete", "10:40:00", "AllJobsCompleted", "jobset completed successfully")
    cluster.saw("10:40:00", "JobSet", child(condition("Completed", "10:40:00", "AllJobsCompleted")))
    cluster.saw("10:40:00", "TrainJob", k.trainjob("ft", "09:00:00", done)).later("10:45:00")
    job = cluster.job
    # 100 min; six until the first pod, one from the failure to the next pod. Its runtime says the GPUs: 2 x 4 x 8.
    assert (job.job, job.e2e_s, job.components["scheduling"], job.gpus) == ("ads/ft/uid-ft", 6000.0, 420.0, 64)
    assert cluster.ends() == [(0, "failed", "host_memory"), (1, "succeeded", "unknown")]
    assert (job.nof, job.status) == (1, "succeeded")
    assert not cluster.folder.unknown.words
    (started, _) = (event for event in cluster.events if event.kind == "attempt_started")
    assert started.gpus == 64


@pytest.mark.parametrize("of", ["TrainJob", "JobSet"])
def test_a_trainjob_under_kueue(of: str) -> None:
    """Kueue's workload belongs to the TrainJob, or in older versions to its job set."""
    cluster = Cluster()
    work = k.workload("w", "ft", of, "09:00:00")
    work["metadata"]["ownerReferences"][0]["uid"] = "uid-ft" if of == "TrainJob" else "uid-set"

    def workload(*conditions: Any) -> dict[str, Any]:
        return {**work, "status": {"conditions": list(conditions)}}

    suspended = condition("Suspended", "09:00:00", "Suspended", "TrainJob is suspended")
    admitted = condition("Admitted", "09:10:00", "Admitted")
    cluster.saw("09:00:00", "TrainJob", k.trainjob("ft", "09:00:00", suspended))
    cluster.saw("09:00:01", "Workload", workload())
    cluster.saw("09:00:01", "JobSet", child(condition("Suspended", "09:00:01", "SuspendedJobs")))
    cluster.saw("09:10:00", "Workload", workload(admitted))
    cluster.saw("09:10:10", "Pod/JobSet", node(0, "09:10:10"))
    evicted = condition("Evicted", "09:40:00", "Preempted", "by ads/big")
    cluster.saw("09:40:00", "Workload", workload({**admitted, "status": "False"}, evicted))
    again = condition("Suspended", "09:40:02", "Suspended", "TrainJob is suspended")
    cluster.saw("09:40:02", "TrainJob", k.trainjob("ft", "09:00:00", again))
    resumed = condition("Suspended", "10:00:01", "Resumed", "TrainJob is resumed", status="False")
    cluster.saw("10:00:00", "Workload", workload(condition("Admitted", "10:00:00", "Admitted"), evicted))
    cluster.saw("10:00:01", "TrainJob", k.trainjob("ft", "09:00:00", resumed))
    failed = condition("Failed", "11:00:00", "DeadlineExceeded", "TrainJob exceeded its active deadline")
    cluster.saw("11:00:00", "TrainJob", k.trainjob("ft", "09:00:00", resumed, failed))
    # Its job set is removed then: that says nothing more.
    cluster.saw("11:00:01", "JobSet", child(), deleted=True).later("11:05:00")
    job = cluster.job
    assert (job.components["scheduling"], job.e2e_s, job.gpus) == ((10 + 20) * 60, 7200.0, 64)
    assert cluster.ends() == [(0, "preempted", "capacity"), (1, "failed", "timeout")]
    assert (job.nof_preempted, job.status) == (1, "failed")
    assert not cluster.folder.unknown.words


def test_a_trainjob_that_says_its_gpus_and_one_without_a_runtime() -> None:
    trainer = {"numNodes": 4, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}
    cluster = Cluster().saw("09:00:00", "TrainJob", k.trainjob("ft", "09:00:00", trainer=trainer))
    assert cluster.job.gpus == 32
    failed = condition("Failed", "09:00:02", "TrainingRuntimeNotSupported", "unsupported runtime")
    cluster.saw("09:00:02", "TrainJob", k.trainjob("ft", "09:00:00", failed, trainer=trainer))
    assert (cluster.job.status, cluster.job.attempts) == ("failed", 0)


def test_a_job_set_stands_for_a_trainjob_that_is_not_watched() -> None:
    cluster = Cluster(kinds=("jobsets",))
    cluster.saw("09:00:01", "JobSet", child())
    cluster.saw("09:06:00", "Pod/JobSet", node(0, "09:06:00"))
    cluster.saw("09:36:00", "JobSet", child(condition("Failed", "09:36:00", "FailedJobs"))).later("09:40:00")
    assert (cluster.job.job, cluster.job.status, cluster.job.gpus) == ("ads/ft/uid-ft", "failed", 64)
    gone = Cluster(kinds=("jobsets",)).saw("09:00:01", "JobSet", child()).saw("09:10:00", "JobSet", child(), True)
    assert gone.job.status == "cancelled"


def test_only_trainjobs_are_watched_and_pods_are_found_by_their_job_set() -> None:
    cluster = Cluster(kinds=("trainjobs",))
    cluster.saw("09:00:00", "TrainJob", k.trainjob("ft", "09:00:00"))
    cluster.saw("09:06:00", "Pod/JobSet", node(0, "09:06:00"))
    assert [event.kind for event in cluster.events] == ["job_submitted", "attempt_started"]


def test_a_trainjob_that_comes_after_its_job_set_spoke() -> None:
    """The TrainJob may be out of reach for longer than anything waits for it."""
    cluster = Cluster()
    cluster.saw("09:00:01", "JobSet", child())
    cluster.saw("09:06:00", "Pod/JobSet", node(0, "09:06:00")).later("09:07:00")
    assert [event.kind for event in cluster.events] == ["job_submitted", "attempt_started"]
    cluster.saw("09:08:00", "TrainJob", k.trainjob("ft", "09:00:00"))
    done = condition("Complete", "10:00:00", "AllJobsCompleted")
    cluster.saw("10:00:00", "TrainJob", k.trainjob("ft", "09:00:00", done))
    cluster.saw("10:00:01", "JobSet", child(), deleted=True)
    assert (cluster.job.attempts, cluster.job.status, cluster.job.e2e_s) == (1, "succeeded", 3600.0)


def ray_life() -> list[tuple[str, str, dict[str, Any]]]:
    """A RayJob that fails once, is suspended on its second try, and succeeds on its second."""

    def job(phase: str, clock: str, **status: Any) -> tuple[str, str, dict[str, Any]]:
        return clock, "RayJob", k.rayjob("r", "09:00:00", phase, clock, **status)

    died = {
        "containerStatuses": [{"name": "ray", "state": {"terminated": {"exitCode": 1, "finishedAt": k.at("09:34:50")}}}]
    }
    return [
        ("09:00:00", "RayJob", k.rayjob("r", "09:00:00")),
        job("Initializing", "09:00:02", rayClusterName="r-aaa", startTime=k.at("09:00:02")),
        ("09:04:00", "Pod/RayJob", head("r-aaa", "09:04:00")),
        job("Running", "09:05:00", rayClusterName="r-aaa", jobStatus="PENDING"),
        job(
            "Running",
            "09:05:10",
            rayClusterName="r-aaa",
            jobStatus="RUNNING",
            rayJobInfo={"startTime": k.at("09:05:10")},
        ),
        ("09:34:50", "Pod/RayJob", head("r-aaa", "09:04:00", **died)),
        job(
            "Retrying",
            "09:35:00",
            rayClusterName="r-aaa",
            jobStatus="FAILED",
            reason="AppFailed",
            message="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
            failed=1,
            rayJobInfo={"startTime": k.at("09:05:10"), "endTime": k.at("09:34:55")},
        ),
        job("", "09:35:10", failed=1),
        job("Initializing", "09:35:12", failed=1, rayClusterName="r-bbb", startTime=k.at("09:35:12")),
        ("09:37:00", "Pod/RayJob", head("r-bbb", "09:37:00")),
        job("Running", "09:38:00", failed=1, rayClusterName="r-bbb", jobStatus="RUNNING"),
        job("Suspending", "10:08:00", failed=1, rayClusterName="r-bbb", jobStatus="RUNNING"),
        job("Suspended", "10:08:20", failed=1),
        job("Initializing", "10:30:00", failed=1, rayClusterName="r-ccc", startTime=k.at("10:30:00")),
        ("10:31:00", "Pod/RayJob", head("r-ccc", "10:31:00")),
        job(
            "Complete",
            "11:31:00",
            failed=1,
            succeeded=1,
            rayClusterName="r-ccc",
            jobStatus="SUCCEEDED",
            endTime=k.at("11:31:00"),
            rayJobInfo={"startTime": k.at("10:32:00"), "endTime": k.at("11:30:58")},
        ),
    ]


def test_a_rayjob_that_is_tried_again_and_suspended() -> None:
    cluster, twice = Cluster(), Cluster()
    for clock, kind, item in ray_life():
        cluster.saw(clock, kind, item)
        twice.saw(clock, kind, item).saw(clock, kind, item)
    job = cluster.job
    # 151 min in all. Waited: 4 min, 2 min from Retrying to the next pod, 23 min from Suspending to the next.
    assert (job.e2e_s, job.components["scheduling"]) == (151 * 60, (4 + 2 + 23) * 60)
    assert cluster.ends() == [(0, "failed", "gpu_memory"), (1, "preempted", "capacity"), (2, "succeeded", "unknown")]
    assert (job.attempts, job.nof, job.nof_preempted, job.status) == (3, 2, 1, "succeeded")
    # Three replicas of two hosts with eight GPUs each; the head has none.
    assert (job.job, job.gpus, job.team) == ("ads/r/uid-r", 48, "ads")
    assert not cluster.folder.unknown.words
    assert [event.id for event in twice.events] == [event.id for event in cluster.events]


def test_a_rayjob_whose_retry_went_unseen() -> None:
    life = ray_life()
    first = Cluster()
    for clock, kind, item in life[:5]:
        first.saw(clock, kind, item)
    # It comes back when the second try runs: that has another RayCluster and one failure before it.
    (retried,) = [item for clock, _, item in life if clock == "09:38:00"]
    second = Cluster()
    second.folder.load(first.folder.dump())
    second.saw("09:40:00", "RayJob", retried).saw("09:40:00", "Pod/RayJob", head("r-bbb", "09:37:00"))
    assert second.ends() == [(0, "failed", "unknown")]
    starts = [(event.attempt, event.ts) for event in second.events if event.kind == "attempt_started"]
    assert starts == [(1, us("09:37:00"))]


def test_a_rayjob_without_pods_begins_when_ray_says_so() -> None:
    """Its pods may not be seen, or are gone."""
    cluster = Cluster()
    ended = {"jobStatus": "FAILED", "reason": "AppFailed", "failed": 1, "endTime": k.at("09:30:00")}
    item = k.rayjob("r", "09:00:00", "Failed", "09:30:00", rayJobInfo={"startTime": k.at("09:05:10")}, **ended)
    cluster.saw("09:45:00", "RayJob", item).later("09:46:00")
    assert (cluster.job.attempts, cluster.job.e2e_s, cluster.job.components["scheduling"]) == (1, 1800.0, 310.0)
    assert cluster.ends() == [(0, "failed", "unknown")]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ({"jobStatus": "STOPPED"}, "cancelled"),
        ({"jobStatus": "SUCCEEDED"}, "succeeded"),
        ({"jobStatus": "FAILED"}, "failed"),
        ({"jobStatus": "EVAPORATED"}, "cancelled"),
        ({}, "cancelled"),
    ],
)
def test_how_a_ray_job_ended_that_is_complete(status: dict[str, Any], outcome: str) -> None:
    cluster = Cluster()
    item = k.rayjob("r", "09:00:00", "Complete", "09:30:00", endTime=k.at("09:30:00"), **status)
    cluster.saw("09:30:00", "RayJob", item).later("09:31:00")
    assert cluster.job.status == outcome
    assert list(cluster.folder.unknown.words) == (["status (Ray): EVAPORATED"] if "EVAP" in str(status) else [])


def test_a_phase_of_a_rayjob_without_any_time_is_when_it_was_seen() -> None:
    cluster = Cluster()
    cluster.saw("09:04:00", "RayJob", k.rayjob("r", "09:00:00", "Running", rayClusterName="r-aaa"))
    cluster.saw("09:04:00", "Pod/RayJob", head("r-aaa", "09:04:00"))
    cluster.saw("09:20:00", "RayJob", k.rayjob("r", "09:00:00", "Suspending", rayClusterName="r-aaa"))
    (end,) = (event for event in cluster.events if event.kind == "attempt_ended")
    assert (end.ts, end.outcome) == (us("09:20:00"), "preempted")


def test_a_batch_job_starts_with_its_first_pod_where_pods_are_seen() -> None:
    """It counts itself as started when its pods are made."""
    label = "batch.kubernetes.io/job-name"
    cluster = Cluster()
    cluster.saw("09:00:02", "Job", k.batch_job("j", "09:00:00", startTime=k.at("09:00:02")))
    assert [event.kind for event in cluster.events] == ["job_submitted"]
    cluster.saw("09:30:00", "Pod/Job", k.pod("j-x", label, "j", "09:30:00"))
    assert cluster.job.components["scheduling"] == 1800.0
    blind = Folder("c1", "test", ("jobs",))
    job = Change("Job", False, k.batch_job("j", "09:00:00", startTime=k.at("09:00:02")))
    events = [*blind.change(job, us("09:00:02")), *blind.absent("Pod/Job", us("09:00:03"))]
    assert [one.event.kind for one in events] == ["job_submitted", "attempt_started"]


def listing() -> dict[str, list[dict[str, Any]]]:
    """What a watcher finds that comes when much is over."""
    admitted, finished = condition("Admitted", "09:10:00"), condition("Finished", "10:00:00", "Succeeded")
    done = condition("Completed", "09:50:00", "AllJobsCompleted")
    complete = condition("Complete", "09:55:00", "AllJobsCompleted")
    ray = {"jobStatus": "SUCCEEDED", "endTime": k.at("09:58:00"), "rayClusterName": "r-aaa"}
    return {
        "Workload": [
            k.workload("w", "q", "JobSet", "09:00:00", admitted, finished),
            k.workload("v", "x", "MPIJob", "09:00:00", admitted),
        ],
        "JobSet": [
            k.jobset("q", "09:00:00", condition("Completed", "10:00:00", "AllJobsCompleted")),
            k.jobset("own", "09:00:00", done),
            child(),
        ],
        "TrainJob": [k.trainjob("ft", "09:00:00", complete)],
        "RayJob": [k.rayjob("r", "09:00:00", "Complete", "09:58:00", **ray)],
        # By name, not by time: the second one got its node first.
        "Pod/JobSet": [
            node(0, "09:06:30"),
            node(1, "09:06:00"),
            k.pod("own-0", JOBSET_LABEL, "own", "09:07:00"),
            k.pod("own-1", JOBSET_LABEL, "own", "09:05:00", **k.terminated("09:49:00", 0, "Completed")),
            k.pod("q-0", JOBSET_LABEL, "q", "09:10:20"),
        ],
        "Pod/RayJob": [head("r-aaa", "09:04:00")],
    }


def test_what_is_over_already_is_told_whole() -> None:
    shots = told(sorted(listing()))
    assert {name: (job["attempts"], job["status"], job["e2e"]) for name, job in shots.items()} == {
        "ads/q/uid-q": (1, "succeeded", 3600.0),
        "ads/own/uid-own": (1, "succeeded", 3000.0),
        "ads/ft/uid-ft": (1, "succeeded", 3300.0),
        "ads/r/uid-r": (1, "succeeded", 3480.0),
        "ads/x/uid-x": (1, "starting", 600.0),
    }
    assert {name: job["scheduling"] for name, job in shots.items()} == {
        "ads/q/uid-q": 600.0,
        "ads/own/uid-own": 300.0,
        "ads/ft/uid-ft": 360.0,
        "ads/r/uid-r": 240.0,
        "ads/x/uid-x": 600.0,
    }


def told(order: list[str], seed: int = 0, mixed: bool = False) -> dict[str, dict[str, Any]]:
    """The jobs, where kinds are listed in this order, or object by object side by side."""
    from support.imported import folded

    folder = Folder("c1", "test", ("workloads", "jobsets", "trainjobs", "rayjobs"))
    events = []
    now = us("12:00:00")
    streams = {kind: iter([*(Change(kind, False, item) for item in items), None]) for kind, items in listing().items()}
    chance = random.Random(seed)
    while streams:
        kind = chance.choice(sorted(streams)) if mixed else next(kind for kind in order if kind in streams)
        change = next(streams[kind])
        found = folder.synced(kind, now) if change is None else folder.change(change, now)
        events += [decode_event(line_of(one)) for one in found]
        if change is None:
            del streams[kind]
    events += [decode_event(line_of(one)) for one in folder.flush(now)]
    shots = {name: shot.summary for name, shot in folded(events).items()}
    return {
        name: {
            "attempts": job.attempts,
            "status": job.status,
            "e2e": job.e2e_s,
            "scheduling": job.components["scheduling"],
            "gpus": job.gpus,
        }
        for name, job in shots.items()
    }


def test_kinds_may_be_listed_in_any_order() -> None:
    wanted = told(sorted(listing()))
    for order in itertools.islice(itertools.permutations(listing()), 0, None, 20):
        assert told(list(order)) == wanted


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_kinds_may_be_listed_side_by_side(seed: int) -> None:
    assert told([], seed, mixed=True) == told(sorted(listing()))


def test_a_kind_that_may_be_seen_again_speaks_again() -> None:
    """Rights that are taken away and given back."""
    cluster = Cluster()
    cluster.saw("09:00:00", "TrainJob", k.trainjob("other", "09:00:00"))
    list(cluster.folder.absent("TrainJob", us("09:01:00")))
    cluster.saw("09:02:00", "TrainJob", k.trainjob("other", "09:00:00"))
    cluster.saw("09:02:01", "JobSet", child())
    assert {event.job for event in cluster.events} == {"ads/other/uid-othe"}
    cluster.saw("09:02:02", "TrainJob", k.trainjob("ft", "09:00:00"))
    assert {event.job for event in cluster.events} == {"ads/other/uid-othe", "ads/ft/uid-ft"}
