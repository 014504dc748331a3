"""How the recorder speaks of its own trouble: a warning for each distinct failure, now and then, never more.

Everything goes to the logger `ettwatch`. Nothing here raises.
"""

from collections.abc import Callable
from functools import wraps
from time import monotonic
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

EVERY_S: Final = 300.0
"""Seconds for which a failure that was logged is not logged again."""

_said: dict[str, tuple[float, int]] = {}


def warn(key: str, message: str) -> None:
    """Log `message` as a warning, unless one with the same `key` was logged in the last five minutes."""
    try:
        now = monotonic()
        when, swallowed = _said.get(key, (-EVERY_S, 0))
        if now - when < EVERY_S:
            _said[key] = (when, swallowed + 1)
            return
        if len(_said) > 1000:
            _said.clear()
        _said[key] = (now, 0)
        import logging

        more = f" (and {swallowed} times more since it was last logged)" if swallowed else ""
        logging.getLogger("ettwatch").warning("ettwatch: %s%s", message, more)
    except Exception:  # a broken log handler must not reach the trainer
        return


def trouble(where: str, error: BaseException) -> None:
    """Log a failure of the recorder's own; training goes on without what failed."""
    warn(f"{where}:{type(error).__name__}", f"{where} failed: {type(error).__name__}: {error}")


def guarded(default: R) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function log what it raises and return `default` instead. For functions that run no user code."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                trouble(function.__qualname__, error)
                return default

        return call

    return decorate
