"""Which objects are watched, by the names of the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ettwatch_sources.kubernetes.pods import OWNER_LABELS

_KINDS: Final = {
    "workloads": (("Workload", "/apis/kueue.x-k8s.io/v1beta1", "workloads"),),
    "jobsets": (("JobSet", "/apis/jobset.x-k8s.io/v1alpha2", "jobsets"),),
    "pytorchjobs": (("PyTorchJob", "/apis/kubeflow.org/v1", "pytorchjobs"),),
    "volcano": (("VolcanoJob", "/apis/batch.volcano.sh/v1alpha1", "jobs"),),
    "jobs": (("Job", "/apis/batch/v1", "jobs"),),
}
_VERSIONS: Final = {"Workload": ("v1beta2",), "JobSet": ("v1",)}
WATCHED: Final = tuple(_KINDS)
"""What can be watched, by the names of the command line."""


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
    owners = {resource.kind for resource in found}
    for kind, label in OWNER_LABELS:
        if kind in owners:
            found.append(Resource(f"Pod/{kind}", f"/api/v1{where}/pods", label))
    return found
