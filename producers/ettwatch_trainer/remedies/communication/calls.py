"""Counts what this thread asks of other ranks, so that a test fails if communication comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.utils._python_dispatch import TorchDispatchMode

_SPACES = ("c10d", "_c10d_functional", "c10d_functional")
_WAITS = ("wait_tensor", "monitored_barrier_")


class CountCalls:
    """While entered: every collective and message of this thread, by operator (`broadcast_`, `allgather_`, …).

    It sees what reaches the process groups, whoever calls: an `all_gather_object` counts as the two gathers that it
    is. `groups` counts process groups that were made by `dist.new_group`, which is itself a rendezvous of all ranks.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.groups = 0
        self._mode: Any = None
        self._made: Any = None

    @property
    def total(self) -> int:
        """How many there were, process groups included."""
        return sum(self.calls.values()) + self.groups

    def __enter__(self) -> CountCalls:
        """Begin to count."""
        made = self._made = distributed_c10d.new_group

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.groups += 1
            return made(*args, **kwargs)

        self._mode = _Mode(self._count)
        self._mode.__enter__()
        self._put(counted)
        return self

    def __exit__(self, *error: Any) -> None:
        """Stop."""
        self._put(self._made)
        self._mode.__exit__(*error)

    def _put(self, made: Callable[..., Any]) -> None:
        for module in (distributed_c10d, dist):
            setattr(module, "new_group", made)  # noqa: B010 - it is another function, which mypy would refuse

    def _count(self, operator: str) -> None:
        space, _, name = operator.partition("::")
        if space in _SPACES and name not in _WAITS:
            self.calls[name] += 1


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells the name of each operator that torch runs in this thread."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tell = tell

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Tell of one operator, and run it."""
        self._tell(func._schema.name)
        return func(*args, **(kwargs or {}))
