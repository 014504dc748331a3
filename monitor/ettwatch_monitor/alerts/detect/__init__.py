"""The detector: pure, told the time, and the same for the same samples whatever came first."""

from ettwatch_monitor.alerts.detect.calendar import Calendar
from ettwatch_monitor.alerts.detect.incident import Book, Incident
from ettwatch_monitor.alerts.detect.look import Effect, Look, Span
from ettwatch_monitor.alerts.detect.metrics import METRICS, Metric
from ettwatch_monitor.alerts.detect.round import Detector, Round
from ettwatch_monitor.alerts.detect.sample import (
    FLEET,
    Exposure,
    Failed,
    Rate,
    Sample,
    Stream,
    StreamKey,
    Times,
    in_order,
)
from ettwatch_monitor.alerts.detect.settings import Settings

__all__ = [
    "FLEET",
    "METRICS",
    "Book",
    "Calendar",
    "Detector",
    "Effect",
    "Exposure",
    "Failed",
    "Incident",
    "Look",
    "Metric",
    "Rate",
    "Round",
    "Sample",
    "Settings",
    "Span",
    "Stream",
    "StreamKey",
    "Times",
    "in_order",
]
