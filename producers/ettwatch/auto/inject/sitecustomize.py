"""Put in front of Python's path by `ettwatch run --auto`: imports `ettwatch.auto`, then the sitecustomize behind it."""

import os
import sys
from importlib import import_module


def _instrument() -> None:
    try:
        import_module("ettwatch.auto")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "ettwatch":
            raise
        # This Python has its own packages. Ours need nothing but the standard library.
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
        sys.path.append(home)
        try:
            import_module("ettwatch.auto")
        finally:
            sys.path.remove(home)


def _hand_on() -> None:
    """Become the sitecustomize that there would be without this one, if there is one."""
    from importlib.util import find_spec, module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or os.curdir) != here]
    this = sys.modules.pop("sitecustomize", None)
    spec = find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        if this is not None:
            sys.modules["sitecustomize"] = this
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _instrument()
except Exception as error:
    if os.environ.get("ETTWATCH_AUTO_SAID") is None:
        os.environ["ETTWATCH_AUTO_SAID"] = "1"
        sys.stderr.write(f"ettwatch: this Python is not instrumented: {type(error).__name__}: {error}\n")
_hand_on()
