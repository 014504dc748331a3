"""Loaders whose waits are measured."""

from collections.abc import Callable, Iterable, Iterator
from time import monotonic_ns
from typing import Any, Generic, TypeVar

from ettwatch.loop import Loop
from ettwatch.spans import Phase, Span, open_span

T = TypeVar("T")


class Tracked(Generic[T]):
    """A loader, of which each iterator measures."""

    def __init__(self, loader: Iterable[T], loop: Loop, first: Callable[[], Phase]) -> None:
        self._loader = loader
        self._loop = loop
        self._first = first

    def __iter__(self) -> Iterator[T]:
        return Batches(self._loader, self._loop, self._first)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)


class SizedTracked(Tracked[T]):
    """The same of a loader that has a length."""

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]


class Batches(Generic[T]):
    """The batches of a loader. What it raises passes on, and it may be asked again after that, as itself may."""

    __slots__ = ("_first", "_iterator", "_loader", "_loop")

    def __init__(self, loader: Iterable[T], loop: Loop, first: Callable[[], Phase]) -> None:
        """Iterate over `loader` from the first batch asked for on; `first` is the phase of one before the loop."""
        self._loader = loader
        self._iterator: Iterator[T] | None = None
        self._loop = loop
        self._first = first

    def __iter__(self) -> "Batches[T]":
        return self

    def __next__(self) -> T:
        loop = self._loop
        inside = open_span() is not None
        if self._iterator is None and loop.reported is None and not inside:
            return self._next_before_the_loop()
        # In a phase (an evaluation, say) the phase is charged, not the wait.
        counts = loop.open and not inside
        since = monotonic_ns()
        if counts:
            loop.waiting = since
        try:
            return self._next()
        finally:
            if counts:
                # First the one, then the other: a reader in between sees too little, never too much.
                loop.waiting = 0
                loop.waited += monotonic_ns() - since

    def _next(self) -> T:
        if self._iterator is None:
            self._iterator = iter(self._loader)
        return next(self._iterator)

    def _next_before_the_loop(self) -> T:
        span: Span = self._first().begin()
        span.enter()
        try:
            batch = self._next()
        except BaseException as error:
            span.leave()
            span.end(None if isinstance(error, StopIteration) else error)
            raise
        span.leave()
        span.end()
        return batch
