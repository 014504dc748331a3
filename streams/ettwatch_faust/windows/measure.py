"""The figures that say how things stand, taken from the lanes now and then."""

from collections.abc import Mapping, Sequence

from ettwatch_faust.ports import Group
from ettwatch_faust.windows.merge_lane import MergeLane
from ettwatch_faust.windows.metrics import WindowsMetrics
from ettwatch_faust.windows.owned import Owned
from ettwatch_faust.windows.source_lane import SourceLane

__all__ = ["measure"]


def measure(metrics: WindowsMetrics, owned: Sequence[Owned], groups: Mapping[str, Group], clock_s: float) -> None:
    """Set the figures.

    Args:
        metrics: The figures.
        owned: The partitions that are owned.
        groups: The consumer group, by topic.
        clock_s: The time.
    """
    sources = [each.lane for each in owned if isinstance(each.lane, SourceLane)]
    mergers = [each.lane for each in owned if isinstance(each.lane, MergeLane)]
    metrics.jobs.set(sum(lane.jobs for lane in sources))
    metrics.dimensions.set(sum(lane.dims for lane in mergers))
    metrics.bad.set(sum(each.lane.bad for each in owned))
    metrics.refused.labels("1").set(sum(lane.refused for lane in sources))
    metrics.refused.labels("2").set(sum(lane.refused for lane in mergers))
    lags: dict[str, int] = dict.fromkeys(groups, 0)
    for each in owned:
        for topic, place in each.places.items():
            lags[topic] += place.lag(groups[topic].highwater(each.lane.partition), clock_s)[0]
    for topic, lag in lags.items():
        metrics.lag.labels(topic).set(lag)
