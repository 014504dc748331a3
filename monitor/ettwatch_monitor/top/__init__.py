"""The fleet in a terminal: one look at the database, drawn to fit."""

from ettwatch_monitor.top.draw import draw
from ettwatch_monitor.top.look import Look, look

__all__ = ["Look", "draw", "look"]
