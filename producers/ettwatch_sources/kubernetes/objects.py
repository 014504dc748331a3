"""Objects of Kubernetes to facts: what each kind says of when its job started and ended, and why.

Sources of the meanings: the API types of kueue (workload_types.go), jobset (jobset_types.go), the training operator
(common_types.go, v1), volcano (batch/v1alpha1/job.go) and of Kubernetes itself (batch/v1, core/v1). TrainJob and RayJob
are in their own modules.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ettwatch_schemas import Outcome
from ettwatch_sources.kubernetes import words
from ettwatch_sources.kubernetes.common import (
    Object,
    Seen,
    Unknown,
    conditions,
    gpus_of_pod,
    inner,
    listed,
    number,
    part,
    place_of,
    said,
    submitted,
    time_of,
    told,
    true,
    uid_of,
)
from ettwatch_sources.kubernetes.rayjob import rayjob_facts
from ettwatch_sources.kubernetes.trainjob import trainjob_facts
from ettwatch_sources.watch.facts import Ended, Fact, Finished, Started, Submitted

Facts = Callable[[Object, Seen, Unknown], Iterator[Fact]]
"""Turns an object into facts: (the object, by whom and when it is seen, where unknown words go)."""


def jobset_facts(item: Object, seen: Seen, unknown: Unknown) -> Iterator[Fact]:
    """JobSet (jobset.x-k8s.io). Its status has no time of a start: that comes from Kueue or from its pods."""
    uid = uid_of(item)
    gpus = 0
    for group in listed(item, "spec", "replicatedJobs"):
        job = inner(group, "template", "spec")
        each = gpus_of_pod(part(job, "template", "spec"))
        gpus += number(group.get("replicas"), 1) * number(job.get("parallelism"), 1) * each
    there = submitted(item, seen.cluster, gpus, "JobSet")
    if there is None:
        return
    yield there
    for condition in conditions(item):
        word = unknown.of(words.JOBSET, "reason of a condition (JobSet)", condition.reason)
        if condition.status != "True" or condition.ts is None:
            continue
        if condition.type in {"Completed", "Failed"}:
            outcome: Outcome = "succeeded" if condition.type == "Completed" else "failed"
            cause = word.cause if word is not None else "unknown"
            yield Finished(uid, condition.ts, outcome, cause, said(condition.reason, condition.message))
        elif condition.type == "Suspended":
            yield Ended(uid, condition.ts, "preempted", "capacity", said(condition.reason, condition.message))


def pytorchjob_facts(item: Object, seen: Seen, unknown: Unknown) -> Iterator[Fact]:
    """PyTorchJob (kubeflow.org/v1)."""
    uid = uid_of(item)
    gpus = 0
    for replica in inner(item, "spec", "pytorchReplicaSpecs").values():
        gpus += number(part(replica, "replicas") or 1, 1) * gpus_of_pod(part(replica, "template", "spec"))
    there = submitted(item, seen.cluster, gpus, "PyTorchJob")
    if there is None:
        return
    yield there
    # In the order of time: restarting, then running again.
    steps = sorted((c for c in conditions(item) if c.ts is not None), key=lambda c: (c.ts or 0, c.type != "Restarting"))
    started = time_of(part(item, "status", "startTime"))
    if started is not None and not any(c.type == "Running" for c in steps):
        yield Started(uid, started)
    for condition in steps:
        word = unknown.of(words.TRAINING, "condition (PyTorchJob)", condition.type)
        assert condition.ts is not None
        if word is None or (condition.status != "True" and condition.type != "Running"):
            continue
        why = said(condition.reason, condition.message)
        if condition.type == "Running" and condition.status == "True":
            yield Started(uid, condition.ts)
        elif condition.type in {"Restarting", "Suspended"} and word.outcome is not None:
            yield Ended(uid, condition.ts, word.outcome, word.cause, why)
        elif condition.type in {"Succeeded", "Failed"} and word.outcome is not None:
            if started is not None:
                yield Started(uid, started)
            yield Finished(uid, condition.ts, word.outcome, word.cause, why)


def volcano_facts(item: Object, seen: Seen, unknown: Unknown) -> Iterator[Fact]:
    """Volcano's Job (batch.volcano.sh). Its conditions are the phases it went through, each with its time."""
    uid = uid_of(item)
    gpus = sum(
        number(task.get("replicas"), 1) * gpus_of_pod(part(task, "template", "spec"))
        for task in listed(item, "spec", "tasks")
    )
    there = submitted(item, seen.cluster, gpus, "VolcanoJob")
    if there is None:
        return
    yield there
    steps = [
        (time_of(one.get("lastTransitionTime")), str(one.get("status") or ""))
        for one in listed(item, "status", "conditions")
    ]
    state = inner(item, "status", "state")
    steps.append((time_of(state.get("lastTransitionTime")), str(state.get("phase") or "")))
    reason = said(str(state.get("reason") or ""), str(state.get("message") or ""))
    for ts, phase in sorted({(ts, phase) for ts, phase in steps if ts is not None and phase}):
        word = unknown.of(words.VOLCANO, "phase (Volcano Job)", phase)
        if word is None:
            continue
        if phase == "Running":
            yield Started(uid, ts)
        elif phase in {"Restarting", "Aborting", "Terminating"} and word.outcome is not None:
            yield Ended(uid, ts, word.outcome, word.cause, reason)
        elif phase in {"Completed", "Aborted", "Terminated", "Failed"} and word.outcome is not None:
            yield Finished(uid, ts, word.outcome, word.cause, reason)


def batch_job_facts(item: Object, seen: Seen, unknown: Unknown) -> Iterator[Fact]:
    """Job (batch/v1) that is no part of something larger. Pods that fail and are replaced do not end it."""
    uid = uid_of(item)
    spec = inner(item, "spec")
    gpus = number(spec.get("parallelism"), 1) * gpus_of_pod(part(spec, "template", "spec"))
    there = submitted(item, seen.cluster, gpus, "Job")
    if there is None:
        return
    yield there
    started = time_of(part(item, "status", "startTime"))
    if started is not None:
        yield Started(uid, started)
    for condition in conditions(item):
        if condition.status != "True" or condition.ts is None:
            continue
        why = said(condition.reason, condition.message)
        if condition.type == "Complete":
            yield Finished(uid, condition.ts, "succeeded")
        elif condition.type == "Failed":
            word = unknown.of(words.JOB_FAILED, "reason of Failed (batch/v1 Job)", condition.reason)
            yield Finished(uid, condition.ts, "failed", word.cause if word is not None else "unknown", why)
        elif condition.type == "Suspended":
            yield Ended(uid, condition.ts, "preempted", "capacity", why)


def child_facts(item: Object, seen: Seen, unknown: Unknown) -> Iterator[Fact]:
    """JobSet that runs for another object, as words about that."""
    owner = parent_of(item)
    for fact in jobset_facts(item, seen, unknown):
        word = _stands_for(fact, item, owner) if isinstance(fact, Submitted) else fact
        yield word._replace(key=str(owner.get("uid")))


def parent_of(item: Object) -> Object:
    """Return the reference to the owner of an object; empty where it has none."""
    return next(iter(listed(item, "metadata", "ownerReferences")), {})


def _stands_for(there: Submitted, item: Object, owner: Object) -> Submitted:
    """Return that the owner of an object is there, as far as the object tells."""
    uid = owner.get("uid")
    if not uid:
        return there
    namespace, name = place_of(item)
    job = told(item, "job") or f"{namespace}/{owner.get('name') or name}/{str(uid)[:8]}"
    return there._replace(key=str(uid), job=job)


def workload_facts(item: Object, seen: Seen, unknown: Unknown) -> Iterator[Fact]:
    """Workload of Kueue: it says when quota was given and taken away. The job is its owner, where it has one."""
    owner = parent_of(item)
    key = str(owner.get("uid") or uid_of(item))
    gpus = sum(
        number(group.get("count"), 1) * gpus_of_pod(part(group, "template", "spec"))
        for group in listed(item, "spec", "podSets")
    )
    there = submitted(item, seen.cluster, gpus, str(owner.get("kind") or "Workload"))
    if there is None:
        return
    yield _stands_for(there, item, owner)
    evicted, admitted = true(item, "Evicted"), true(item, "Admitted")
    steps: list[Fact] = []
    if admitted is not None and admitted.ts is not None:
        steps.append(Started(key, admitted.ts, gpus=gpus or None))
    if evicted is not None and evicted.ts is not None:
        steps.append(_evicted(item, key, evicted.reason, evicted.message, evicted.ts, unknown))
    # The condition of an eviction stays when the workload is admitted again: in the order of time.
    yield from sorted(steps, key=lambda fact: fact.ts)
    finished = true(item, "Finished")
    if finished is not None and finished.ts is not None:
        word = unknown.of(words.KUEUE_FINISHED, "reason of Finished (Kueue)", finished.reason)
        outcome: Outcome = "cancelled" if word is None or word.outcome is None else word.outcome
        if finished.reason == "JobFinished" and "fail" in finished.message.lower():
            outcome = "failed"
        cause = word.cause if word is not None else "unknown"
        yield Finished(key, finished.ts, outcome, cause, said(finished.reason, finished.message))


def _evicted(item: Object, key: str, reason: str, message: str, ts: int, unknown: Unknown) -> Ended:
    # "PreemptedDueToX" and the like carry their base word first.
    base = next((name for name in (reason, reason.split("DueTo", 1)[0]) if name in words.KUEUE_EVICTED), reason)
    word = unknown.of(words.KUEUE_EVICTED, "reason of Evicted (Kueue)", base)
    why = said(reason, message)
    if reason == "Preempted":
        preempted = true(item, "Preempted")
        if preempted is not None:
            unknown.of(words.KUEUE_PREEMPTED, "reason of Preempted (Kueue)", preempted.reason)
            why = said(f"{reason}/{preempted.reason}", preempted.message or message)
    outcome: Outcome = "preempted" if word is None or word.outcome is None else word.outcome
    return Ended(key, ts, outcome, word.cause if word is not None else "unknown", why)


OWNERS: Final[Mapping[str, Facts]] = {
    "JobSet": jobset_facts,
    "TrainJob": trainjob_facts,
    "RayJob": rayjob_facts,
    "PyTorchJob": pytorchjob_facts,
    "VolcanoJob": volcano_facts,
    "Job": batch_job_facts,
}
"""Kinds that are jobs, to what they say. Volcano's own kind is `Job`, too: here it goes by another name."""
