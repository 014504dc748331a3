"""A property that is worked out once. That of functools takes a lock in Python 3.11, which costs more than the work."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):
    """A method as a property whose value is kept in the object."""

    def __init__(self, method: Callable[[Any], T]) -> None:
        self._method = method
        self._name = method.__name__
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, thing: None, kind: type) -> "once[T]": ...

    @overload
    def __get__(self, thing: object, kind: type) -> T: ...

    def __get__(self, thing: object | None, kind: type) -> "T | once[T]":
        if thing is None:
            return self
        value = self._method(thing)
        thing.__dict__[self._name] = value
        return value
