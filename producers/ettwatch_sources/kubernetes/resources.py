"""Which objects are watched, by the names of the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ettwatch_sources.kubernetes.pods import OWNER_LABELS

_KINDS: Final = {
    "workloads": (("Workload", "/apis/kueue.x-k8s.io/v1beta1", "workloads"),),
    "jobsets": (("JobSet", "/apis/jobset.x-k8s.io/v1alpha2", "jobsets"),),
    "trainjobs": (("TrainJob", "/apis/trainer.kubeflow.org/v1alpha1", "trainjobs"),),
    "rayjobs": (("RayJob", "/apis/ray.io/v1", "rayjobs"),),
    "pytorchjobs": (("PyTorchJob", "/apis/kubeflow.org/v1", "pytorchjobs"),),
    "volcano": (("VolcanoJob", "/apis/batch.volcano.sh/v1alpha1", "jobs"),),
    "jobs": (("Job", "/apis/batch/v1", "jobs"),),
}
_VERSIONS: Final = {"Workload": ("v1beta2",), "JobSet": ("v1",), "RayJob": ("v1alpha1",)}
WATCHED: Final = tuple(_KINDS)
"""What can be watched, by the names of the command line."""


_PODS: Final = {"TrainJob": "JobSet"}


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects: its name here, its path, and a selector."""

    kind: str
    path: str
    selector: str = ""
    versions: tuple[str, ...] = ()
    """Other versions of the API, tried where this one is not there."""


def resources(kinds: Sequence[str], namespace: str | None) -> list[Resource]:
    """Return the objects to follow for these kinds, their pods included, in a namespace or in all."""
    where = f"/namespaces/{namespace}" if namespace else ""
    found = [
        Resource(kind, f"{group}{where}/{plural}", versions=_VERSIONS.get(kind, ()))
        for name in kinds
        for kind, group, plural in _KINDS[name]
    ]
    owners = {pods_of(resource.kind) for resource in found}
    for kind, label in OWNER_LABELS:
        if kind in owners:
            found.append(Resource(f"Pod/{kind}", f"/api/v1{where}/pods", label))
    return found


def kinds_of(names: Sequence[str]) -> frozenset[str]:
    """Return the kinds of objects that these names of the command line stand for."""
    return frozenset(kind for name in names for kind, _, _ in _KINDS[name])


def pods_of(kind: str) -> str:
    """Return by which kind the pods of a job of this kind go: a TrainJob's are those of its JobSet."""
    return _PODS.get(kind, kind)
