"""Objects of Kubernetes, as short as their API types allow."""

from typing import Any

DAY = "2025-11-03T"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta1/workloads"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
TRAINJOBS = "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"
RAYJOBS = "/apis/ray.io/v1/rayjobs"
PYTORCHJOBS = "/apis/kubeflow.org/v1/pytorchjobs"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1/jobs"
JOBS = "/apis/batch/v1/jobs"
PODS = "/api/v1/pods"
ALL = (WORKLOADS, JOBSETS, TRAINJOBS, RAYJOBS, PYTORCHJOBS, VOLCANO, JOBS, PODS)


def at(clock: str) -> str:
    return f"{DAY}{clock}Z"


def condition(kind: str, clock: str, reason: str = "", message: str = "", status: str = "True") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(clock)}


def pod_template(gpus: int) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "t", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}}


def thing(name: str, created: str, spec: Any, conditions: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ads", "uid": more.pop("uid", f"uid-{name}"), "creationTimestamp": at(created)}
    meta |= more.pop("meta", {})
    return {"metadata": meta, "spec": spec, "status": {"conditions": conditions or [], **more}}


def jobset(name: str, created: str, *conditions: Any, restarts: int = 0, **more: Any) -> dict[str, Any]:
    group = {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4, "template": pod_template(8)}}}
    return thing(name, created, {"replicatedJobs": [group]}, list(conditions), restarts=restarts, **more)


def trainjob(name: str, created: str, *conditions: Any, trainer: Any = None, **more: Any) -> dict[str, Any]:
    spec = {"runtimeRef": {"name": "torch-distributed"}} | ({"trainer": trainer} if trainer else {})
    return thing(name, created, spec, list(conditions), **more)


def rayjob(name: str, created: str, phase: str = "", clock: str = "", **status: Any) -> dict[str, Any]:
    """A RayJob whose status was last written at `clock`."""
    groups = [{"groupName": "gpu", "replicas": 3, "numOfHosts": 2, "template": pod_template(8)}]
    spec = {"rayClusterSpec": {"headGroupSpec": {"template": pod_template(0)}, "workerGroupSpecs": groups}}
    meta = status.pop("meta", {})
    if clock:
        written = {"manager": "manager", "subresource": "status", "time": at(clock), "operation": "Update"}
        meta = {"managedFields": [{"manager": "kubectl", "time": at("08:00:00")}, written], **meta}
    told = {key: value for key, value in {"jobDeploymentStatus": phase, **status}.items() if value != ""}
    return thing(name, created, spec, meta=meta, **told)


def pytorchjob(name: str, created: str, *conditions: Any, **more: Any) -> dict[str, Any]:
    replicas = {
        "Master": {"replicas": 1, "template": pod_template(8)},
        "Worker": {"replicas": 3, "template": pod_template(8)},
    }
    return thing(name, created, {"pytorchReplicaSpecs": replicas}, list(conditions), **more)


def batch_job(name: str, created: str, *conditions: Any, **more: Any) -> dict[str, Any]:
    return thing(name, created, {"parallelism": 2, "template": pod_template(4)}, list(conditions), **more)


def volcano_job(name: str, created: str, *steps: tuple[str, str], **more: Any) -> dict[str, Any]:
    conditions = [{"status": phase, "lastTransitionTime": at(clock)} for phase, clock in steps]
    state = {"phase": steps[-1][0], "lastTransitionTime": at(steps[-1][1])} if steps else {}
    return thing(
        name, created, {"tasks": [{"replicas": 2, "template": pod_template(8)}]}, conditions, state=state, **more
    )


def workload(name: str, owner: str, kind: str, created: str, *conditions: Any) -> dict[str, Any]:
    meta = {"ownerReferences": [{"kind": kind, "name": owner, "uid": f"uid-{owner}"}]}
    spec = {"podSets": [{"name": "w", "count": 8, "template": pod_template(8)}]}
    return thing(name, created, spec, list(conditions), meta=meta)


def pod(name: str, label: str, owner: str, scheduled: str | None = None, **status: Any) -> dict[str, Any]:
    labels = {label: owner} | status.pop("labels", {})
    conditions = [condition("PodScheduled", scheduled)] if scheduled else []
    conditions += status.pop("conditions", [])
    return thing(name, "09:00:00", {"nodeName": "node-1"}, conditions, meta={"labels": labels}, **status)


def terminated(clock: str, code: int, reason: str, message: str = "") -> dict[str, Any]:
    told = {"exitCode": code, "reason": reason, "message": message, "finishedAt": at(clock)}
    return {"containerStatuses": [{"name": "t", "state": {"terminated": told}}]}
