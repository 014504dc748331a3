"""RayJob of KubeRay to facts: a Ray job with a RayCluster of its own, a new one for each try.

Sources: kuberay, ray-operator/apis/ray/v1/rayjob_types.go and its controller. `failed` counts the tries that failed,
the present one included once it is `Retrying` or `Failed`. `startTime` is when the RayCluster was asked for, not when
it came: an attempt starts with its first pod, and without any pods when Ray says that the job began
(`rayJobInfo.startTime`).
"""

from collections.abc import Iterator
from typing import Final

from ettwatch_schemas import Cause, Outcome
from ettwatch_sources.causes import cause_of
from ettwatch_sources.kubernetes import words
from ettwatch_sources.kubernetes.common import (
    Object,
    Seen,
    Unknown,
    gpus_of_pod,
    inner,
    listed,
    number,
    part,
    said,
    submitted,
    time_of,
    uid_of,
)
from ettwatch_sources.ray.words import STATUSES
from ettwatch_sources.watch.facts import Ended, Fact, Finished, Started

_COUNTED: Final = frozenset({"Failed", "Retrying"})


def rayjob_facts(item: Object, seen: Seen, unknown: Unknown) -> Iterator[Fact]:
    """RayJob (ray.io)."""
    uid = uid_of(item)
    there = submitted(item, seen.cluster, _gpus(item), "RayJob")
    if there is None:
        return
    yield there
    status = inner(item, "status")
    began = time_of(part(status, "rayJobInfo", "startTime"))
    if began is not None:
        yield Started(uid, began, run=run_of(item))
    phase, reason, message = (str(status.get(name) or "") for name in ("jobDeploymentStatus", "reason", "message"))
    word = unknown.of(words.RAYJOB, "jobDeploymentStatus (RayJob)", phase)
    if word is None or word.outcome is None:
        return
    outcome = _outcome(str(status.get("jobStatus") or ""), unknown) if phase == "Complete" else word.outcome
    cause: Cause = word.cause
    if outcome == "failed":
        told = unknown.of(words.RAYJOB_REASON, "reason of a RayJob", reason)
        cause = told.cause if told is not None else "unknown"
        cause = cause_of(message) if cause == "unknown" and message else cause
    why = said(reason, message[-2000:])
    if phase in {"Complete", "Failed"}:
        ended = time_of(status.get("endTime")) or _changed(item) or seen.now
        yield Finished(uid, ended, outcome, cause, why)
    else:
        yield Ended(uid, _changed(item) or seen.now, outcome, cause, why)


def run_of(item: Object) -> int:
    """Return how many tries failed before the present one."""
    status = inner(item, "status")
    return max(number(status.get("failed")) - (status.get("jobDeploymentStatus") in _COUNTED), 0)


def cluster_of(item: Object) -> str:
    """Return the name of the RayCluster of the present try; empty where there is none yet."""
    name = part(item, "status", "rayClusterName")
    return name if isinstance(name, str) else ""


def _outcome(job_status: str, unknown: Unknown) -> Outcome:
    """How the Ray job ended: one that failed or was stopped may be complete, too."""
    if job_status not in STATUSES:
        unknown.of({}, "status (Ray)", job_status)
    return STATUSES.get(job_status, (None, ""))[0] or "cancelled"


def _changed(item: Object) -> int | None:
    """When its status was written last: what the phases have instead of times, as each is written when it begins."""
    written = (
        one.get("time") for one in listed(item, "metadata", "managedFields") if one.get("subresource") == "status"
    )
    return max((ts for ts in map(time_of, written) if ts is not None), default=None)


def _gpus(item: Object) -> int | None:
    """GPUs of its RayCluster; None where it takes one that is there already."""
    spec = inner(item, "spec", "rayClusterSpec")
    if not spec:
        return None
    total = gpus_of_pod(part(spec, "headGroupSpec", "template", "spec"))
    for group in listed(spec, "workerGroupSpecs"):
        hosts = number(group.get("replicas")) * number(group.get("numOfHosts"), 1)
        total += hosts * gpus_of_pod(part(group, "template", "spec"))
    return total
