"""In which order the messages of several files are handled.

The files of one job (of its ranks, of its launcher) are read side by side. Where there is a backlog, one of them must
not run so far ahead of the others in event time that their events come out as too late: a file waits while another one
still holds an event of the same job that is more than `slack` older. Among jobs, and within that bound, the files take
turns.
"""

from collections.abc import Callable, Iterator, Sequence

from ettwatch_app.up.files import SpoolFile
from ettwatch_app.up.messages import Message

Delivery = tuple[SpoolFile, Message]


def merged(files: Callable[[], Sequence[SpoolFile]], slack: int | None) -> Iterator[Delivery]:
    """Empty the buffers of the files, and move their places.

    Files that are filled meanwhile have their turn in the next pass, so that one that is filled again and again keeps
    no other one waiting.

    Args:
        files: Returns the files there are now. Of one file the messages come in their order.
        slack: How far (µs) the events of a job may be handled ahead of older ones in another file; None: no matter.
    """
    while waiting := [f for f in files() if f.buffer]:
        oldest = _oldest(waiting) if slack is not None else {}
        moved = False
        for file in waiting:
            for message in _allowed(file, oldest, slack):
                moved = True
                yield file, message
        if not moved:
            # Files of several jobs can wait for each other in a ring: the oldest message opens it.
            first = min(waiting, key=lambda f: f.buffer[0].low)
            yield first, first.take()


def _allowed(file: SpoolFile, oldest: dict[str, list[tuple[int, int]]], slack: int | None) -> Iterator[Message]:
    bounds: dict[str, float] = {}
    while file.buffer:
        message = file.buffer[0]
        if slack is not None and message.job is not None:
            if message.job not in bounds:
                others = [low for low, owner in oldest[message.job] if owner != id(file)]
                bounds[message.job] = min(others) + slack if others else float("inf")
            if message.high > bounds[message.job]:
                return
        yield file.take()


def _oldest(files: Sequence[SpoolFile]) -> dict[str, list[tuple[int, int]]]:
    """Return, by job, the two files that hold the oldest event: as (time, which file)."""
    found: dict[str, list[tuple[int, int]]] = {}
    for file in files:
        for job, low in file.oldest().items():
            two = found.setdefault(job, [])
            two.append((low, id(file)))
            if len(two) > 2:
                two.remove(max(two))
    return found
