"""The loop of a watcher that asks: poll, write, and only then move the cursor."""

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from ettwatch_sources.sinks import Sink
from ettwatch_sources.told import Refused, Told, line_of
from ettwatch_sources.watch.cursor import Cursor

_LONGEST_WAIT_S: Final = 300.0


class PollError(Exception):
    """The scheduler did not answer. The message says what to do."""


class Poller(Protocol):
    """Asks a scheduler what there is."""

    read: int
    """How many of its records could be read so far."""
    refused: int
    """How many could not, or gave an event that is refused."""

    def poll(self, now: int) -> Iterator[Told]:
        """Yield what is new at `now` (µs). Raises PollError."""

    def dump(self) -> dict[str, Any]:
        """Return the state for the cursor file."""


def follow(
    poller: Poller,
    sink: Sink,
    cursor: Cursor,
    *,
    every_s: float,
    clock: Callable[[], int],
    sleep: Callable[[float], bool],
    say: Callable[[str], None],
    once: bool = False,
) -> int:
    """Poll until `sleep` returns True; return how many events were written.

    Events are with the kernel before the cursor moves: after a crash some are told twice, with the same ids, and none
    is lost. A scheduler that does not answer is asked again, less and less often.

    Args:
        poller: Asks the scheduler.
        sink: Takes the events.
        cursor: Keeps the poller's state.
        every_s: Seconds between polls.
        clock: The time in µs since the epoch.
        sleep: Waits for some seconds; returns True when the loop should end.
        say: Takes a line for people.
        once: Poll once; then PollError is raised.
    """
    written = 0
    wait = every_s
    while True:
        try:
            for told in poller.poll(clock()):
                try:
                    sink.write(line_of(told))
                except Refused as error:
                    poller.refused += 1
                    say(f"an event of {told.event.job!r} is refused: {error}")
                    continue
                written += 1
            sink.flush()
            cursor.save(poller.dump())
            wait = every_s
        except PollError as error:
            if once:
                raise
            wait = min(max(2 * wait, every_s), _LONGEST_WAIT_S)
            say(f"{error}; asked again in {wait:.0f} s")
        if once or sleep(wait):
            return written
