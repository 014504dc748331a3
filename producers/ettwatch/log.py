"""How the recorder speaks of its own trouble: a warning for each distinct failure, now and then, never more.

Everything goes to the logger `ettwatch`. Nothing here raises, but for what is the trainer's own: a signal handler of
his may interrupt the recorder anywhere, and what it raises is to reach him.
"""

import sys
from collections.abc import Callable
from functools import partial, wraps
from time import monotonic
from types import CodeType
from typing import Any, Final, ParamSpec, TypeVar

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
    except Exception as error:  # a broken log handler must not reach the trainer
        pass_on(error)


def trouble(where: str, error: BaseException) -> None:
    """Log a failure of the recorder's own; training goes on without what failed."""
    pass_on(error)
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = "it cannot be printed"
    warn(f"{where}:{name}", f"{where} failed: {name}: {text}")


def pass_on(error: BaseException) -> None:
    """Raise `error` again if it came out of a signal handler that happened to interrupt the recorder."""
    signals: Any = sys.modules.get("signal")
    if signals is None:  # then nobody has set a handler
        return
    codes = {_code_of(signals.getsignal(number)) for number in signals.valid_signals()}
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in codes:
            raise error
        step = step.tb_next


def _code_of(handler: Any) -> CodeType | None:
    while isinstance(handler, partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if not hasattr(function, "__code__") and callable(handler):
        function = type(handler).__call__
    found = getattr(function, "__code__", None)
    return found if isinstance(found, CodeType) else None


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
