"""Brokers for the windows as processes."""

from support.brokers import kafka, own, prefix, swept, three

__all__ = ["kafka", "own", "prefix", "swept", "three"]
