"""Which dead letters there are, and which of them are wanted. Pure."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final, NamedTuple

from ettwatch_schemas import DeadLetter

_HEAD_BYTES: Final = 240


class Place(NamedTuple):
    """Where a record stands in the topic of dead letters."""

    partition: int
    offset: int


class MessageId(NamedTuple):
    """What tells a refused message from all others: where it was read, and a digest of its bytes.

    The digest tells two messages apart that stood in the same place, before and after a topic was made anew.
    """

    topic: str
    partition: int
    offset: int
    digest: bytes


def message_of(letter: DeadLetter) -> MessageId:
    """Return the message that a letter is about; several letters may be about one."""
    digest = blake2b(digest_size=16)
    for part in (letter.key, letter.value):
        digest.update(b"\0" if part is None else b"\1%d:%s" % (len(part), part))
    return MessageId(sys.intern(letter.topic), letter.partition, letter.offset, digest.digest())


@dataclass(slots=True)
class Entry:
    """A dead letter as it is remembered: without its bytes.

    Attributes:
        place: Where it stands in the topic.
        letter: The letter; its value is None here.
        message: The message that it is about.
        head: The first bytes of the message.
        size: How many bytes the message has; None where it had no value.
        handled: What was done about it: `replayed`, `dropped`, or None.
    """

    place: Place
    letter: DeadLetter
    message: MessageId
    head: bytes
    size: int | None
    handled: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which letters are wanted; an empty set takes all.

    Attributes:
        codes: With one of these codes.
        jobs: Of one of these jobs.
        topics: Read from one of these topics.
        since: Refused then or later (µs).
        until: Refused before then (µs).
    """

    codes: frozenset[str] = frozenset()
    jobs: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    since: int | None = None
    until: int | None = None

    @property
    def everything(self) -> bool:
        """Whether it takes each letter."""
        return self == Wanted()

    def takes(self, letter: DeadLetter) -> bool:
        """Return whether a letter is wanted."""
        return (
            (not self.codes or letter.code in self.codes)
            and (not self.jobs or letter.job in self.jobs)
            and (not self.topics or letter.topic in self.topics)
            and (self.since is None or letter.time >= self.since)
            and (self.until is None or letter.time < self.until)
        )


@dataclass(slots=True)
class Letters:
    """Takes the records of the topic in the order of each partition, and tells which letters are wanted.

    A letter that is wanted takes about a kilobyte of memory, any other some 60 bytes. A letter that came twice, after
    a crash of its writer, counts once. A mark speaks of what was there before it, and of doubles that come after it.
    """

    wanted: Wanted
    strangers: int = 0
    """Records that are no letters."""
    stranger: str = ""
    """The first of them, and what is wrong with it."""
    _of: dict[tuple[str, int, int, int | None], list[Entry]] = field(default_factory=dict)
    _passed: set[int] = field(default_factory=set)

    def add(self, place: Place, letter: DeadLetter) -> None:
        """Take the next record."""
        if letter.handled is not None:
            for entry in self._of.get(letter.origin, ()):
                entry.handled = letter.handled
            return
        message = message_of(letter)
        if not self.wanted.takes(letter):
            self._passed.add(hash((message, letter.index)))
            return
        if hash((message, letter.index)) in self._passed:
            return  # a double is refused later than its first
        same = self._of.setdefault(letter.origin, [])
        if not any(entry.message == message for entry in same):
            size = None if letter.value is None else len(letter.value)
            same.append(Entry(place, _light(letter), message, (letter.value or b"")[:_HEAD_BYTES], size))

    def strange(self, place: Place, problem: str) -> None:
        """Take a record that is no letter."""
        self.strangers += 1
        self.stranger = self.stranger or f"partition {place.partition}, offset {place.offset}: {problem}"

    def selected(self, *, handled: bool = False) -> list[Entry]:
        """Return the letters that are wanted, the oldest first; with `handled` also those that were dealt with."""
        entries = (entry for same in self._of.values() for entry in same if handled or entry.handled is None)
        return sorted(entries, key=lambda entry: (entry.letter.time, entry.place))


def _light(letter: DeadLetter) -> DeadLetter:
    """The letter without its bytes, its texts shared with those of other letters."""
    return replace(
        letter,
        value=None,
        code=sys.intern(letter.code),
        field=None if letter.field is None else sys.intern(letter.field),
        fix=None if letter.fix is None else sys.intern(letter.fix),
        topic=sys.intern(letter.topic),
    )


def messages(entries: Iterable[Entry]) -> dict[MessageId, list[Entry]]:
    """Return the letters by the message that they are about."""
    found: dict[MessageId, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.message, []).append(entry)
    return found


def by_code(entries: Iterable[Entry]) -> Iterator[tuple[str, int]]:
    """Count the letters of each code, the most frequent code first."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.letter.code] = counts.get(entry.letter.code, 0) + 1
    return iter(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
