"""Brokers for the runs of the whole pipeline."""

from support.brokers import own, prefix, three

__all__ = ["own", "prefix", "three"]
