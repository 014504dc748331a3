"""Dynamic shapes found from observed recompiles: seen in one run, written down, marked in the next."""

from ettwatch_trainer.remedies.shapes.marks import Loaded, Mark, Marks
from ettwatch_trainer.remedies.shapes.watch import Recompile, ShapeWatch

__all__ = ["Loaded", "Mark", "Marks", "Recompile", "ShapeWatch"]
