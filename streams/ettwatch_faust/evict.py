"""The bound of what is unpacked in memory, over all partitions."""

from collections.abc import Collection

from ettwatch_faust.lane import Lane
from ettwatch_faust.live import STATUSES
from ettwatch_faust.metrics import Metrics

__all__ = ["evict"]


def evict(lanes: Collection[Lane], most: int, metrics: Metrics) -> None:
    """Let go of states where too many are in memory, from each partition its share; tell how much there is.

    Args:
        lanes: The jobs. To be called after a flush.
        most: Weight that may stay.
        metrics: The figures.
    """
    weights = [lane.weight for lane in lanes]
    total = sum(weights)
    if total > most:
        for lane, weight in zip(lanes, weights, strict=True):
            lane.evict((total - most) * weight // total + 1)
    metrics.weight.set(total)
    metrics.states.set(sum(lane.in_memory for lane in lanes))
    for status in STATUSES:
        metrics.live_jobs.labels(status).set(sum(lane.jobs[status] for lane in lanes))
