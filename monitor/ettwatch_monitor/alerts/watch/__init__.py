"""Watching: what is read, by which rules, what is remembered, and what is told."""

from ettwatch_monitor.alerts.watch.figures import AlertFigures
from ettwatch_monitor.alerts.watch.loop import Loop
from ettwatch_monitor.alerts.watch.memory import Audit, Memory, StateError
from ettwatch_monitor.alerts.watch.rules import Rules, RulesError
from ettwatch_monitor.alerts.watch.rulesfile import load_rules, parse_rules
from ettwatch_monitor.alerts.watch.streams import SCOPES, make_streams
from ettwatch_monitor.alerts.watch.threshold import Threshold
from ettwatch_monitor.alerts.watch.watcher import Report, Watcher
from ettwatch_monitor.alerts.watch.window import Window
from ettwatch_monitor.alerts.watch.words import alert_of

__all__ = [
    "SCOPES",
    "AlertFigures",
    "Audit",
    "Loop",
    "Memory",
    "Report",
    "Rules",
    "RulesError",
    "StateError",
    "Threshold",
    "Watcher",
    "Window",
    "alert_of",
    "load_rules",
    "make_streams",
    "parse_rules",
]
