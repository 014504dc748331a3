"""One episode of something that got worse: from its onset to its end. And the book of all that are remembered."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from ettwatch_monitor.alerts.detect.calendar import DAY_US
from ettwatch_monitor.alerts.detect.look import Effect, Span
from ettwatch_monitor.alerts.detect.sample import StreamKey

__all__ = ["Book", "Ending", "Incident", "Sort"]

Sort = Literal["regression", "fleet", "outage", "threshold"]
Ending = Literal["recovered", "accepted", "quiet", "off"]


@dataclass(frozen=True, slots=True)
class Incident:
    """One episode.

    Attributes:
        key: Of what: one key has at most one open episode.
        sort: A regression of one scope; one of so many scopes that it is the fleet's; an outage; a plain threshold.
        onset: Since when, as far as is known, in microseconds.
        earliest: The onset may well be so early.
        latest: The onset may well be so late.
        found: When it was found.
        p: Bound on the probability of as much evidence, were nothing changed.
        shift: How large it surely was when it was found, in standard deviations; of a rate, the logarithm of the
            ratio. What is found first is overrated: a level that is better than that alone is no recovery.
        effect: How much it was then; None of what is no regression of one stream.
        also: Keys of other streams that moved with it.
        ended: When it was over; None while it is open.
        ending: Why: the level came back, became the usual one, nothing comes any more, or it is not watched any more.
        back: Since when the level is back, where it came back.
        note: Of a threshold or an outage: what was seen.
    """

    key: StreamKey
    sort: Sort
    onset: int
    earliest: int
    latest: int
    found: int
    p: float
    shift: float
    effect: Effect | None = None
    also: tuple[StreamKey, ...] = ()
    ended: int | None = None
    ending: Ending | None = None
    back: int | None = None
    note: str = ""

    @property
    def open(self) -> bool:
        """Whether it is not over."""
        return self.ended is None

    def end(self, now: int, ending: Ending, back: int | None = None) -> Self:
        """Return it as over."""
        return replace(self, ended=max(now, self.onset), ending=ending, back=back)

    def near(self, onset: int, days: int) -> bool:
        """Whether another onset is about the same time."""
        reach = days * DAY_US
        return self.earliest - reach <= onset <= self.latest + reach


@dataclass(frozen=True, slots=True)
class Book:
    """All episodes that are remembered. What is asked for survives the process: the book is its whole memory.

    Attributes:
        incidents: Open ones, and those that ended within the history that is read.
    """

    incidents: tuple[Incident, ...] = ()
    _open: dict[StreamKey, Incident] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_open", {one.key: one for one in self.incidents if one.open})

    def open(self, key: StreamKey) -> Incident | None:
        """Return the open episode of a stream."""
        return self._open.get(key)

    def all_open(self) -> Iterator[Incident]:
        """Yield the open ones."""
        yield from self._open.values()

    def holes(self, key: StreamKey) -> tuple[Span, ...]:
        """Return the times in which a stream was worse than usual, and then recovered."""
        return tuple(
            Span(one.onset, one.back)
            for one in self.incidents
            if one.back is not None and (one.key == key or key in one.also)
        )

    def cut(self, key: StreamKey) -> int:
        """Return before when a stream has nothing more to say: a new level was accepted then."""
        onsets = (
            one.onset for one in self.incidents if one.ending == "accepted" and (one.key == key or key in one.also)
        )
        return max(onsets, default=0)

    def written(self, incident: Incident) -> "Book":
        """Return the book with a new state of an episode, or a new episode."""
        same = (incident.key, incident.found)
        kept = tuple(one for one in self.incidents if (one.key, one.found) != same)
        return Book((*kept, incident))

    def since(self, ts: int) -> "Book":
        """Return the book without what ended before an instant."""
        return Book(tuple(one for one in self.incidents if one.ended is None or one.ended >= ts))
