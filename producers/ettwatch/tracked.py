"""Loaders whose waits are measured."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Tracked(Generic[T]):
    """A loader; `iterate` measures."""

    def __init__(self, loader: Iterable[T], iterate: Callable[[Iterable[T]], Iterator[T]]) -> None:
        self._loader = loader
        self._iterate = iterate

    def __iter__(self) -> Iterator[T]:
        return self._iterate(self._loader)


class SizedTracked(Tracked[T]):
    """The same of a loader that has a length."""

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]
