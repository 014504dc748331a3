"""Stands in for Lightning where it is not installed."""
