"""Alerts on regressions: what is watched, what is found, and how it reaches people."""

from ettwatch_monitor.alerts.alert import SEVERITIES, Alert, Severity, Status

__all__ = ["SEVERITIES", "Alert", "Severity", "Status"]
