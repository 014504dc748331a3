"""The fleet in a terminal: one look at the database."""

from ettwatch_monitor.top.look import Look, look

__all__ = ["Look", "look"]
