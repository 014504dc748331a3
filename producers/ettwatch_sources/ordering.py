"""What a log says, in the order of time: several ranks write into one file, and some tools write the newest first."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")

WINDOW: Final = 10_000
"""How many pieces may lie between where one stands and where it belongs."""

_HELD: Final = 32 << 20


def in_time(
    source: Iterable[T],
    when: Callable[[T], float | str | None],
    text: Callable[[T], str],
    displaced: Callable[[], object],
    window: int = WINDOW,
) -> Iterator[T]:
    """Yield the pieces by their times, those of one time as they come, in bounded memory.

    What has no time stays behind what it follows, or first. What says the same at the same time is given once: logs are
    collected twice. A piece that belongs further back than the window reaches begins anew: what is held is given
    before it.

    Args:
        source: The pieces.
        when: Returns the time of a piece: numbers, or texts that sort as times; all of one type.
        text: Returns what a piece says; at most 32 Mi characters are held.
        displaced: Is called for each piece that is earlier than one before it.
        window: How many pieces are held.
    """
    held: list[tuple[Any, int, bool, T]] = []
    newest: Any = None
    last: Any = None
    given: Any = None
    size = 0
    said: set[str] = set()

    def give(key: Any, own: bool, piece: T) -> bool:
        """Whether it is said for the first time."""
        nonlocal given
        if key != given:
            said.clear()
        given = key
        if not own:
            return True
        words = text(piece)
        new = words not in said
        said.add(words)
        return new

    for number, piece in enumerate(source):
        told = when(piece)
        key = last if told is None else told
        if key is None:
            yield piece
            continue
        last = key
        if newest is not None and key < newest:
            displaced()
        newest = key if newest is None else max(newest, key)
        if given is not None and key < given:
            held.sort(key=_place)
            yield from (old for at, _, own, old in held if give(at, own, old))
            held, size, given = [], 0, None
        heapq.heappush(held, (key, number, told is not None, piece))
        size += len(text(piece))
        while len(held) > window or size > _HELD:
            at, _, own, old = heapq.heappop(held)
            size -= len(text(old))
            if give(at, own, old):
                yield old
    held.sort(key=_place)
    yield from (old for at, _, own, old in held if give(at, own, old))


def _place(entry: tuple[Any, int, bool, object]) -> tuple[Any, int]:
    return entry[0], entry[1]
