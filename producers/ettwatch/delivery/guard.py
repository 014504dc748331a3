"""Imports on a thread that a fork of the trainer cannot cut in two: the child would wait for them for ever."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WAIT_S: Final = 2.0
"""Longest time, in seconds, for which a fork waits for an import that is going on."""

_gate = threading.Lock()
_held = False


@contextmanager
def importing() -> Iterator[None]:
    """While this block runs, a fork by another thread waits for its end."""
    gate = _gate
    with gate:
        yield


def _before() -> None:
    global _held
    _held = _gate.acquire(timeout=WAIT_S)


def _in_parent() -> None:
    global _held
    if _held:
        _held = False
        _gate.release()


def _in_child() -> None:
    global _gate, _held
    _gate, _held = threading.Lock(), False


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
