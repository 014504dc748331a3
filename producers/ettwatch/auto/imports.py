"""Do something when a module has been imported, whoever imports it and whenever, without importing it."""

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ettwatch.log import trouble

Ready = Callable[[ModuleType], None]


class Imports:
    """A finder that finds nothing itself: it lets those behind it find, and hears when a module is complete."""

    def __init__(self) -> None:
        self._coming: dict[str, Callable[[], None]] = {}
        self._waiting: dict[str, list[Ready]] = {}
        self._inside = threading.local()

    def when_imported(self, name: str, ready: Ready) -> None:
        """Call `ready` with the module when its import is complete, or now if it is."""
        module = sys.modules.get(name)
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            _call(ready, module)
            return
        self._waiting.setdefault(name, []).append(ready)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def before_import(self, name: str, ready: Callable[[], None]) -> None:
        """Call `ready` when a module that is not there yet is about to be imported."""
        self._coming[name] = ready
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders have for a module that is waited for; None for any other."""
        coming = self._coming.pop(name, None)
        if coming is not None:
            try:
                coming()
            except Exception as error:
                trouble(f"instrumenting {name}", error)
        if name not in self._waiting or getattr(self._inside, "now", False):
            return None
        self._inside.now = True
        try:
            spec = find_spec(name)
            if spec is not None and spec.loader is not None:
                self._follow(name, spec.loader)
        except (ImportError, AttributeError, ValueError):
            return None  # the import itself will say so
        finally:
            self._inside.now = False
        return spec

    def _follow(self, name: str, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            # This loader is the module's own: with the attribute gone it is as it was.
            del loader.exec_module
            execute(module)
            for ready in self._waiting.pop(name, []):
                _call(ready, module)

        loader.exec_module = exec_module


def _call(ready: Ready, module: ModuleType) -> None:
    try:
        ready(module)
    except Exception as error:
        trouble(f"instrumenting {module.__name__}", error)
