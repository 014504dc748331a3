"""Brokers for the tests of the sink."""

from support.brokers import kafka, own, prefix, swept, three

__all__ = ["kafka", "own", "prefix", "swept", "three"]
