"""Start-up in parallel: steps with dependencies under one deadline, and compilation before the first batch is there."""

from ettwatch_trainer.remedies.startup.ahead import compile_ahead
from ettwatch_trainer.remedies.startup.runner import Startup, StartupError

__all__ = ["Startup", "StartupError", "compile_ahead"]
