"""Whether torch.compile is tracing the caller: then a call must do nothing, or it would break or enter the graph."""

import sys
from collections.abc import Callable

probe: Callable[[], bool] | None = None
"""What tells, if the trainer had torch when it was last asked; for `step`, which cannot afford to look for it."""


def is_compiling() -> bool:
    """Tell whether this call is being traced. torch is asked if the trainer has it, and never imported.

    It is written so that the tracer can follow it, and takes away what comes after. `is_compiling` of torch is no help:
    it is true in every thread of the process while one of them compiles; what is asked here is true only where traced.
    """
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    asks = getattr(compiler, "is_dynamo_compiling", None)  # not in every version, nor while torch is being imported
    return asks is not None and asks() is True


def arm() -> None:
    """Set `probe`; called where the loop begins and where it reports, never by what is traced."""
    global probe
    if probe is None:
        probe = getattr(getattr(sys.modules.get("torch"), "compiler", None), "is_dynamo_compiling", None)
