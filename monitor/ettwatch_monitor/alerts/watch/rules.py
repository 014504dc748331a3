"""The rules: what is watched, how sure to be, plain thresholds, planned maintenance. Without a file, the usual ones."""

from dataclasses import dataclass, field

from ettwatch_monitor.alerts.deliver import DeliverySettings
from ettwatch_monitor.alerts.detect import Settings
from ettwatch_monitor.alerts.watch.streams import SCOPES
from ettwatch_monitor.alerts.watch.threshold import Threshold
from ettwatch_monitor.alerts.watch.window import Window

__all__ = ["Rules", "RulesError"]


class RulesError(ValueError):
    """A file of rules is wrong; one line of text for each problem, each with file and line number."""


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules.

    Attributes:
        detect: Settings of the detector.
        every_s: Seconds from one round to the next.
        scopes: Whose streams are tested.
        thresholds: Plain ones.
        windows: Planned maintenance.
        delivery: Channels and silences.
    """

    detect: Settings = field(default_factory=Settings)
    every_s: float = 600.0
    scopes: tuple[str, ...] = SCOPES[:3]
    thresholds: tuple[Threshold, ...] = ()
    windows: tuple[Window, ...] = ()
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
