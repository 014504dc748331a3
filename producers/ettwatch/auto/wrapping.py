"""Put a function around a public one, in every place where it is known; and tell if it is not what it was."""

import inspect
import sys
import threading
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from ettwatch.auto.session import Session
from ettwatch.log import trouble
from ettwatch.spans import Span


class Changed(Exception):
    """What is to be hooked is not there, or not as it was: the hook stays off."""


_replaced: dict[int, tuple[Any, Any]] = {}
"""What was put in the place of what, by id of the original."""


def public(owner: Any, name: str, *parameters: str) -> Callable[..., Any]:
    """Return a function of a module or class, if it takes these parameters; else raise Changed."""
    where = f"{getattr(owner, '__name__', owner)}.{name}"
    function: Any = getattr(owner, name, None)
    if not callable(function):
        raise Changed(f"{where} is not there")
    try:
        there = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise Changed(f"{where} does not tell its parameters") from None
    missing = [parameter for parameter in parameters if parameter not in there]
    if missing:
        raise Changed(f"{where} has no parameter {missing[0]}")
    return function  # type: ignore[no-any-return]


def replace(owner: Any, name: str, original: Callable[..., Any], around: Callable[..., Any]) -> None:
    """Put `around` in the place of `original` in its module or class."""
    wrapped = wraps(original)(around)
    setattr(owner, name, wrapped)
    _replaced[id(original)] = (original, wrapped)


def rebind() -> None:
    """Put what was replaced in its place wherever it had been imported before."""
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType) or module.__name__.startswith("ettwatch."):
            continue
        for key, value in list(vars(module).items()):
            found = _replaced.get(id(value))
            if found is not None and found[0] is value:
                setattr(module, key, found[1])


Before = Callable[[tuple[Any, ...], dict[str, Any]], str | None]
"""Is told the call; returns the phase that it is, None for none."""
After = Callable[[tuple[Any, ...], dict[str, Any], Any, int], None]
"""Is told the call, what it returned, and when it began (microseconds)."""


def spanned(
    session: Session, original: Callable[..., Any], before: Before, after: After | None = None
) -> Callable[..., Any]:
    """Return a function that calls `original` in a phase. Calls from inside another one, or another thread, are plain.

    What `original` returns and raises passes on untouched; what `before` and `after` raise does not.
    """

    def around(*args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return original(*args, **kwargs)
        with session.inside() as first:
            if not first:
                return original(*args, **kwargs)
            span, started_ts = _begin(session, before, args, kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                if span is not None:
                    span.end(error)
                raise
            if span is not None:
                span.end()
                if after is not None:
                    try:
                        after(args, kwargs, result, started_ts)
                    except Exception as error:
                        trouble(f"instrumenting {original.__name__}", error)
            return result

    return around


def _begin(session: Session, before: Before, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Span | None, int]:
    try:
        name = before(args, kwargs)
        recorder = session.recorder
        if name is None or recorder is None:
            return None, 0
        return session.span(name), recorder._outbox.clock.now()
    except Exception as error:
        trouble("beginning a phase", error)
        return None, 0


def argument(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a call gives for a parameter, None if it gives nothing for it or cannot be read."""
    if name in kwargs:
        return kwargs[name]
    try:
        return inspect.signature(function).bind_partial(*args, **kwargs).arguments.get(name)
    except (TypeError, ValueError):
        return None
