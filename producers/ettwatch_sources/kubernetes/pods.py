"""Pods to facts: when the first of a job got its node, and why one of them ended."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ettwatch_schemas import Cause
from ettwatch_sources.causes import cause_of
from ettwatch_sources.kubernetes import words
from ettwatch_sources.kubernetes.common import Object, Unknown, conditions, inner, listed, number, part, time_of, true
from ettwatch_sources.watch.facts import Fact, Hint, Started

OWNER_LABELS: Final = (
    ("JobSet", "jobset.sigs.k8s.io/jobset-name"),
    ("RayJob", "ray.io/cluster"),
    ("PyTorchJob", "training.kubeflow.org/job-name"),
    ("VolcanoJob", "volcano.sh/job-name"),
    ("Job", "batch.kubernetes.io/job-name"),
)
"""Kind of a job, and the label by which its pods name it; the first that a pod has counts.

Pods of a TrainJob are those of its JobSet, which has its name; pods of a RayJob name its RayCluster.
"""

_EXIT: Final = 2**31 - 1
_RESTARTS: Final = "jobset.sigs.k8s.io/restart-attempt"


def owner_of(pod: Object) -> tuple[str, str, str] | None:
    """Return (kind, namespace, name) of the job of a pod; None where it has none that is known."""
    labels = inner(pod, "metadata", "labels")
    for kind, label in OWNER_LABELS:
        name = labels.get(label)
        if isinstance(name, str) and name:
            return kind, str(part(pod, "metadata", "namespace") or ""), name
    return None


def slim(pod: Object) -> Object:
    """Return what counts of a pod: those that wait are kept."""
    meta, status = inner(pod, "metadata"), inner(pod, "status")
    kept = ("conditions", "phase", "reason", "message", "containerStatuses")
    return {
        "metadata": {name: meta[name] for name in ("name", "namespace", "labels") if name in meta},
        "spec": {"nodeName": part(pod, "spec", "nodeName") or ""},
        "status": {name: status[name] for name in kept if name in status},
    }


def pod_facts(pod: Object, key: str, unknown: Unknown, run: int | None = None) -> Iterator[Fact]:
    """Yield what a pod says of its job, `key`.

    Args:
        pod: The pod.
        key: The uid of its job.
        unknown: Takes words that are not known.
        run: How often its job was started anew before, where the pod itself does not say.
    """
    labels = inner(pod, "metadata", "labels")
    scheduled = true(pod, "PodScheduled")
    if scheduled is not None and scheduled.ts is not None:
        count = labels.get(_RESTARTS)
        own = int(count) if isinstance(count, str) and count.isdecimal() and len(count) < 9 else run
        yield Started(key, scheduled.ts, run=own)
    for condition in conditions(pod):
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason:
            unknown.of(words.SCHEDULED, "reason of PodScheduled", condition.reason)
    disrupted = true(pod, "DisruptionTarget")
    status = inner(pod, "status")
    node = str(part(pod, "spec", "nodeName") or "")
    name = str(part(pod, "metadata", "name") or "")
    if disrupted is not None and disrupted.ts is not None:
        word = unknown.of(words.DISRUPTION, "reason of DisruptionTarget", disrupted.reason)
        cause: Cause = word.cause if word is not None else "unknown"
        yield Hint(key, disrupted.ts, cause, f"pod {name} on {node}: {disrupted.reason}: {disrupted.message}")
    reason = str(status.get("reason") or "")
    ended = list(_terminated(status))
    if status.get("phase") == "Failed" and reason:
        word = unknown.of(words.POD, "reason of a pod", reason)
        ts = max((ts for ts, _ in ended), default=None)
        if ts is not None:
            cause = word.cause if word is not None else "unknown"
            yield Hint(key, ts, cause, f"pod {name} on {node}: {reason}: {status.get('message') or ''}")
    for ts, terminated in ended:
        code = terminated.get("exitCode")
        if code == 0 or not isinstance(code, int) or abs(code) > _EXIT:
            continue
        yield _hint(key, ts, terminated, code, f"pod {name} on {node}", unknown)


def _terminated(status: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The containers that have ended, and those that ended before they were started anew in place."""
    for container in listed(status, "containerStatuses"):
        for when in ("state", "lastState"):
            terminated = inner(container, when, "terminated")
            ts = time_of(terminated.get("finishedAt")) if terminated else None
            if ts is not None:
                yield ts, terminated


def _hint(key: str, ts: int, terminated: Mapping[str, Any], code: int, where: str, unknown: Unknown) -> Hint:
    reason, message = str(terminated.get("reason") or ""), str(terminated.get("message") or "")
    word = unknown.of(words.CONTAINER, "reason of a container", reason)
    cause: Cause = word.cause if word is not None else "unknown"
    signal = number(terminated.get("signal")) or (code - 128 if 128 < code < 128 + 65 else 0)
    if cause == "unknown" and message:
        cause = cause_of(message)
    if cause == "unknown" and code in {126, 127}:
        cause = "config"
    said = ": ".join(text for text in (where, reason, message[-1500:]) if text)
    return Hint(key, ts, cause, said, exit_code=code, signal=signal or None)
