"""Injected slowness of collectives: a wider job, seen from one machine."""

from __future__ import annotations

import time
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

_SPACES = ("c10d", "_c10d_functional")


class SlowCollectives(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While entered, each collective of this thread takes `ms` milliseconds longer. 0: nothing is done."""

    def __init__(self, ms: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._s = ms / 1000

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Wait before a collective, then run it."""
        if func._schema.name.partition("::")[0] in _SPACES:
            time.sleep(self._s)
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> Any:
        """Begin."""
        return super().__enter__() if self._s else self  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> None:
        """Stop."""
        if self._s:
            super().__exit__(*error)  # type: ignore[no-untyped-call]
