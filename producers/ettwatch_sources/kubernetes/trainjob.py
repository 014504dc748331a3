"""TrainJob of Kubeflow's trainer to facts: the job that a JobSet of the same name runs for.

Sources: trainer, pkg/apis/trainer/v1alpha1/trainjob_types.go, and its controller, which copies the conditions Completed
and Failed of the JobSet with their reasons and times. Restarts are the JobSet's: its pods tell them.
"""

from collections.abc import Iterator

from ettwatch_schemas import Outcome
from ettwatch_sources.kubernetes import words
from ettwatch_sources.kubernetes.common import (
    Object,
    Seen,
    Unknown,
    conditions,
    gpus_of,
    inner,
    number,
    said,
    submitted,
    uid_of,
)
from ettwatch_sources.watch.facts import Ended, Fact, Finished


def trainjob_facts(item: Object, seen: Seen, unknown: Unknown) -> Iterator[Fact]:
    """TrainJob (trainer.kubeflow.org). Its status has no time of a start: that comes from Kueue or from its pods."""
    uid = uid_of(item)
    there = submitted(item, seen.cluster, _gpus(item), "TrainJob")
    if there is None:
        return
    yield there
    for condition in conditions(item):
        own = words.TRAINJOB.get(condition.reason)
        word = own or unknown.of(words.JOBSET, "reason of a condition (TrainJob)", condition.reason)
        if condition.status != "True" or condition.ts is None:
            continue
        why = said(condition.reason, condition.message)
        if condition.type in {"Complete", "Failed"}:
            outcome: Outcome = "succeeded" if condition.type == "Complete" else "failed"
            yield Finished(uid, condition.ts, outcome, word.cause if word is not None else "unknown", why)
        elif condition.type == "Suspended":
            yield Ended(uid, condition.ts, "preempted", "capacity", why)


def _gpus(item: Object) -> int | None:
    """GPUs by its own word; None where that is left to its runtime: then its JobSet says it."""
    trainer = inner(item, "spec", "trainer")
    nodes = number(trainer.get("numNodes"))
    return nodes * gpus_of(trainer["resourcesPerNode"]) if nodes and trainer.get("resourcesPerNode") else None
