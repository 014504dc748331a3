"""The reading side of a fleet: alerts on regressions."""
