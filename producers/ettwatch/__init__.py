"""Record where the time of a training job goes. `import ettwatch; rec = ettwatch.init()`; see docs/instrument.md.

What is named here is imported when it is first used: importing `ettwatch` alone costs next to nothing.
"""

import typing

if typing.TYPE_CHECKING:
    from ettwatch.checkpoint import Checkpoint
    from ettwatch.default import get, init, phase
    from ettwatch.recorder import Recorder
    from ettwatch.spans import Phase, Span

__all__ = ["Checkpoint", "Phase", "Recorder", "Span", "__version__", "get", "init", "phase"]

__version__: str

_HOME = {
    "Checkpoint": "checkpoint",
    "Phase": "spans",
    "Recorder": "recorder",
    "Span": "spans",
    "get": "default",
    "init": "default",
    "phase": "default",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    value: object
    if name in _HOME:
        value = getattr(import_module(f"ettwatch.{_HOME[name]}"), name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("ettwatch")
    else:
        raise AttributeError(f"module 'ettwatch' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
