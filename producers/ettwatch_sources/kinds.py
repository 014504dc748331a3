"""The kinds of files that can be imported: name, reader, and how a file of the kind is told by its begin."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ettwatch_sources.feed import Feed
from ettwatch_sources.told import Told

Reader = Callable[[Feed], Iterator[Told]]
"""Reads one file: yields events, and puts what it could not know into `feed.doubts`."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    Attributes:
        name: As on the command line.
        title: What it is, in a few words.
        read: Its reader.
        is_it: Tells by the first bytes of a file, and its name, whether it is of this kind.
        unknown: Flags that every file of this kind has: what it never says.
        restarts: Whether several files of one job are attempts one after the other.
    """

    name: str
    title: str
    read: Reader
    is_it: Callable[[str, str], bool]
    unknown: tuple[str, ...] = ()
    restarts: bool = False
