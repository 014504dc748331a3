"""Brokers for the tests of this area."""

from support.brokers import kafka, own, prefix, swept, three

__all__ = ["kafka", "own", "prefix", "swept", "three"]
