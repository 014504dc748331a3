"""Google's goodput of the same timeline: a pure function over attempts, segments and the positions that were told."""

from ettwatch_app.goodput.definition import Goodput, goodput
from ettwatch_app.goodput.points import Point, point_of, points_of
from ettwatch_app.goodput.show import as_json, from_json, table

__all__ = ["Goodput", "Point", "as_json", "from_json", "goodput", "point_of", "points_of", "table"]
