"""Phases: spans of work, told at their start and their end, each with the span around it as its parent."""

import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextvars import ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ettwatch.compiling import is_compiling
from ettwatch.log import guarded, trouble, warn
from ettwatch.names import COMPONENTS, is_phase
from ettwatch.wire import shown, tidy_attrs

if TYPE_CHECKING:
    from ettwatch.outbox import Outbox

F = TypeVar("F", bound=Callable[..., Any])

_current: ContextVar["Span | None"] = ContextVar("ettwatch_span", default=None)


def open_span() -> "Span | None":
    """Return the innermost open phase of this thread or task."""
    return _current.get()


class Span:
    """One phase that is going on. Without an outbox it tells nothing."""

    __slots__ = ("_around", "_attrs", "_outbox", "_pid", "_token", "id", "phase")

    def __init__(self, phase: str, outbox: "Outbox | None") -> None:
        self.phase = phase
        self.id = ""
        self._outbox = outbox
        self._pid = os.getpid() if outbox else 0
        self._around: Span | None = None
        self._token: Token[Span | None] | None = None
        self._attrs: dict[str, object] | None = None

    def set(self, **attrs: object) -> None:
        """Add details that are sent with the end of the phase, such as cache="hit" or bytes=1024."""
        if self._outbox is not None:
            self._attrs = {**(self._attrs or {}), **attrs}

    @guarded(None)
    def start(self, background: bool, attrs: Mapping[str, object] | None) -> None:
        """Tell that the phase begins."""
        if self._outbox is None:
            return
        self._around = parent = _current.get()
        while parent is not None and parent._outbox is not self._outbox:  # it has ended, or is another recorder's
            parent = parent._around
        self.id = self._outbox.new_id()
        within = parent.id if parent else None
        self._outbox.span_started(self.id, self.phase, within, background, tidy_attrs(attrs))

    @guarded(None)
    def end(self, error: BaseException | None = None) -> None:
        """Tell that the phase ended; only the first call counts, and only in the process that began it."""
        outbox, self._outbox = self._outbox, None
        if outbox is None or not self.id or os.getpid() != self._pid:
            return
        wrong = error is not None and not isinstance(error, GeneratorExit)
        if wrong:
            self._attrs = {"error": type(error).__name__, **(self._attrs or {})}
        outbox.span_ended(self.id, "error" if wrong else "ok", tidy_attrs(self._attrs))

    def enter(self) -> None:
        """Make this the span that phases begun from here on are part of."""
        if self._outbox is not None:
            self._token = _current.set(self)

    def leave(self) -> None:
        """Make the span around this one current again."""
        token, self._token = self._token, None
        if token is not None:
            try:
                _current.reset(token)
            except ValueError:  # left in another task or thread than it was entered in
                if _current.get() is self:
                    _current.set(self._around)


_SILENT = Span("", None)


class Phase:
    """What `Recorder.phase` returns: a context manager, also for `async with`, and a decorator.

    It may be entered any number of times; each time is a span of its own. What the block raises passes on.
    """

    __slots__ = ("_attrs", "_background", "_name", "_open", "_outbox")

    def __init__(
        self,
        outbox: "Callable[[], Outbox | None]",
        name: str,
        background: bool = False,
        attrs: Mapping[str, object] | None = None,
    ) -> None:
        self._outbox = outbox
        self._name = name
        self._background = background
        self._attrs = attrs
        self._open: list[Span] = []

    def begin(self) -> Span:
        """Begin a span and return it; its caller ends it. It becomes nobody's parent."""
        try:
            outbox = self._outbox()
            if outbox is not None and not is_phase(self._name):
                warn(
                    f"phase:{shown(self._name)}",
                    f"{shown(self._name)} is no phase and is not recorded; phases begin with one of "
                    f"{', '.join(COMPONENTS)} and go on in lower case, such as trainer_init.read_config",
                )
                outbox = None
            span = Span(self._name, outbox)
            span.start(self._background, self._attrs)
        except Exception as error:
            trouble("phase", error)
            return Span("", None)
        return span

    def __enter__(self) -> Span:
        if is_compiling():
            return _SILENT
        span = self.begin()
        span.enter()
        self._open.append(span)
        return span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if is_compiling() or not self._open:
            return
        span = self._open.pop()
        span.leave()
        span.end(error)

    async def __aenter__(self) -> Span:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def again(self) -> "Phase":
        """Return the same phase with no span open, for one call of a decorated function."""
        return Phase(self._outbox, self._name, self._background, self._attrs)

    def __call__(self, function: F) -> F:
        """Decorate a function: each call is a span; of a generator, from its first item to its end."""
        import inspect

        if inspect.isasyncgenfunction(function):
            return cast(F, _around_async_generator(self, function))
        if inspect.isgeneratorfunction(function):
            return cast(F, _around_generator(self, function))
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with self.again():
                    return await function(*args, **kwargs)

            return cast(F, call_async)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.again():
                return function(*args, **kwargs)

        return cast(F, call)


def _around_generator(
    phase: Phase, function: Callable[..., Generator[Any, Any, Any]]
) -> Callable[..., Generator[Any, Any, Any]]:
    @wraps(function)
    def items(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        span = phase.begin()
        resume: Callable[[Any], Any] = generator.send
        value: Any = None
        try:
            while True:
                span.enter()  # only while the generator runs: its user's own phases are not part of it
                try:
                    item = resume(value)
                except StopIteration as end:
                    span.end()
                    return end.value
                finally:
                    span.leave()
                resume = generator.send
                try:
                    value = yield item
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:
                    resume, value = generator.throw, error
        except BaseException as error:
            span.end(error)
            raise

    return items


def _around_async_generator(
    phase: Phase, function: Callable[..., AsyncGenerator[Any, Any]]
) -> Callable[..., AsyncGenerator[Any, Any]]:
    @wraps(function)
    async def items(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        span = phase.begin()
        resume: Callable[[Any], Any] = generator.asend
        value: Any = None
        try:
            while True:
                span.enter()
                try:
                    item = await resume(value)
                except StopAsyncIteration:
                    span.end()
                    return
                finally:
                    span.leave()
                resume = generator.asend
                try:
                    value = yield item
                except GeneratorExit:
                    await generator.aclose()
                    raise
                except BaseException as error:
                    resume, value = generator.athrow, error
        except BaseException as error:
            span.end(error)
            raise

    return items
