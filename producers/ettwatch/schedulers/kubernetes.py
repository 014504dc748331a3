"""Kubernetes: the labels and annotations of the pod, from files of the downward API."""

import os
from collections.abc import Mapping
from contextlib import suppress
from json import loads
from typing import Final

from ettwatch.numbers import from_env
from ettwatch.schedulers.told import Told, job_name, submit_stamp

PODINFO: Final = "/etc/podinfo"
"""Where the files of the downward API are looked for, unless ETTWATCH_PODINFO says otherwise."""
_NAMESPACE: Final = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

_JOBSET: Final = "jobset.sigs.k8s.io/"
_BATCH: Final = "batch.kubernetes.io/"
_NAMES: Final = (
    _JOBSET + "jobset-name",
    "training.kubeflow.org/job-name",
    "volcano.sh/job-name",
    _BATCH + "job-name",
    "job-name",
)
"""Labels that name the job, the outermost first: a JobSet is made of Jobs."""
_INDEX_STRIDE: Final = 100_000
"""Pods of one Job, at most: ranks of the Jobs of a JobSet are kept apart by it."""


def tell(env: Mapping[str, str]) -> Told:
    """Return what the pod's labels say, if they are mounted. Raises BadIdentity where a number is none."""
    about = _about(env.get("ETTWATCH_PODINFO") or PODINFO)
    name = next((about[label] for label in _NAMES if about.get(label)), None)
    if name is None:
        return Told(rank=from_env(env, "JOB_COMPLETION_INDEX"))
    cluster = env.get("ETTWATCH_CLUSTER") or "kubernetes"
    namespace = about.get("namespace") or env.get("POD_NAMESPACE") or _read(_NAMESPACE).strip() or "default"
    return Told(
        job=job_name(cluster, namespace, name, submitted=_unique(about) or submit_stamp(env)),
        attempt=from_env(about, _JOBSET + "restart-attempt"),
        rank=_rank(about, env),
        ids=(name,),
        labels={
            short: about[label]
            for short, label in (("queue", "kueue.x-k8s.io/queue-name"), ("workload", "kueue.x-k8s.io/workload"))
            if about.get(label)
        },
    )


def _unique(about: Mapping[str, str]) -> str | None:
    """Return what tells this job from another of the same name: the beginning of its UID."""
    if about.get(_JOBSET + "jobset-name"):
        uid = about.get(_JOBSET + "jobset-uid")
    elif about.get("training.kubeflow.org/job-name") or about.get("volcano.sh/job-name"):
        uid = None  # what is there is of a part that comes anew with each restart
    else:
        uid = about.get(_BATCH + "controller-uid") or about.get("controller-uid")
    return uid[:8] if uid else None


def _rank(about: Mapping[str, str], env: Mapping[str, str]) -> int | None:
    index = from_env(env, "JOB_COMPLETION_INDEX")
    if index is None:
        index = from_env(about, _BATCH + "job-completion-index")
    if index is None:
        return None
    return (from_env(about, _JOBSET + "job-global-index") or 0) * _INDEX_STRIDE + index


def _about(folder: str) -> dict[str, str]:
    about = {}
    for name in ("annotations", "labels"):
        for line in _read(os.path.join(folder, name)).splitlines():
            key, equals, value = line.partition("=")
            if equals:
                with suppress(ValueError):  # not as the kubelet writes it
                    about[key] = str(loads(value))
    namespace = _read(os.path.join(folder, "namespace")).strip()
    return about | ({"namespace": namespace} if namespace else {})


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1_000_000)
    except OSError:
        return ""
