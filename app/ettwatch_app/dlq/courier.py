"""Sends messages again, and marks letters as dealt with: each mark after what it says is true."""

import contextlib
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from ettwatch_app.dlq.letters import MessageId, Place, message_of
from ettwatch_app.dlq.route import Router
from ettwatch_schemas import DeadLetter, letter_headers

if TYPE_CHECKING:
    from ettwatch_faust import Access

Handling = Literal["replayed", "dropped"]

_CHUNK_BYTES: Final = 16 << 20
_CHUNK_MESSAGES: Final = 500
_MAX_REQUEST: Final = 64 << 20
"""The brokers say how much is too much."""


class Producers:
    """One producer of kafka-python after another: one that was refused a record as too large sends no more.

    Args:
        make: Makes one.
        seconds: To wait for the end of one.
    """

    def __init__(self, make: Callable[[], Any], seconds: float) -> None:
        self._make = make
        self._seconds = seconds
        self.now: Any = make()
        """The one that sends."""

    def renew(self) -> None:
        """Put the next one in the place of this one."""
        self.close()
        self.now = self._make()

    def close(self) -> None:
        """End this one."""
        self.now.close(self._seconds)


@dataclass(slots=True)
class Courier:
    """Sends to the brokers. Whatever ends it, no letter is marked whose message was not acknowledged.

    Attributes:
        letters: Name of the topic of dead letters.
        now: When it is (µs): the time of the marks.
        sent: Messages that were sent again, and acknowledged.
        marked: Letters that were marked, and acknowledged.
        refused: Messages that were not taken, with the reason.
    """

    letters: str
    now: int
    _producers: Producers
    _seconds: float
    sent: int = 0
    marked: int = 0
    refused: dict[MessageId, str] = field(default_factory=dict)
    _begun: set[MessageId] = field(default_factory=set)
    _bytes: int = 0
    _sends: list[tuple[MessageId, dict[str, Any], Any]] = field(default_factory=list)
    _marks: dict[tuple[str, int, int, int | None], tuple[MessageId, Place, DeadLetter]] = field(default_factory=dict)
    _done: set[tuple[str, int, int, int | None]] = field(default_factory=set)

    def replay(self, place: Place, letter: DeadLetter, chosen: Set[MessageId], router: Router) -> None:
        """Take a letter with its bytes, if its message is chosen: that is sent once, and all its letters are marked.

        A message is chosen by some of its letters, but sent whole: the others are dealt with too.
        Raises what kafka-python raises where the brokers do not answer.
        """
        message = message_of(letter)
        if message not in chosen:
            return
        if message not in self._begun:
            self._begun.add(message)
            self._send(message, letter, router)
        if message not in self.refused:
            self.mark(place, letter, "replayed", message)
        if self._bytes >= _CHUNK_BYTES:
            self.settle()

    def missed(self, chosen: Set[MessageId]) -> int:
        """Return how many of the chosen messages did not come."""
        return len(chosen - self._begun)

    def mark(self, place: Place, letter: DeadLetter, handling: Handling, message: MessageId) -> None:
        """Mark a letter as dealt with, at the next `settle`."""
        if letter.origin not in self._done:
            mark = replace(letter, value=None, handled=handling, time=self.now)
            self._marks[letter.origin] = message, place, mark
        if len(self._marks) >= _CHUNK_MESSAGES:
            self.settle()

    def _send(self, message: MessageId, letter: DeadLetter, router: Router) -> None:
        route = router.route(letter)
        if route is None:
            self.refused[message] = f"it was read from {letter.topic}, which is no topic of this prefix"
            return
        if letter.value is None and route.key is None:
            self.refused[message] = "it has neither a key nor a value: there is nothing to send"
            return
        there = self._producers.now.partitions_for(route.topic)
        partition = route.partition if route.partition in there else None
        record = {"topic": route.topic, "value": letter.value, "key": route.key, "partition": partition}
        self._sends.append((message, record, self._producers.now.send(**record)))
        self._bytes += len(letter.value or b"")

    def settle(self) -> None:
        """Wait until all that was sent is acknowledged, then send the marks, and wait for them too."""
        from kafka.errors import MessageSizeTooLargeError, RecordListTooLargeError

        failed = []
        for message, record, future in self._sends:
            try:
                future.get(self._seconds)
                self.sent += 1
            except (MessageSizeTooLargeError, RecordListTooLargeError):
                failed.append((message, record))
        # What was sent with a message that is too large, or after it, was refused with it: each once more, alone.
        for number, (message, record) in enumerate(failed):
            if number == 0 or failed[number - 1][0] in self.refused:
                self._producers.renew()
            try:
                self._producers.now.send(**record).get(self._seconds)
                self.sent += 1
            except (MessageSizeTooLargeError, RecordListTooLargeError):
                self.refused[message] = "it is larger than the topic allows; see `ettwatch topics check`"
        if failed and failed[-1][0] in self.refused:
            self._producers.renew()
        self._sends.clear()
        self._bytes = 0
        marks = [each for each in self._marks.values() if each[0] not in self.refused]
        self._marks.clear()
        self._write(marks)

    def _write(self, marks: list[tuple[MessageId, Place, DeadLetter]]) -> None:
        futures = [
            self._producers.now.send(
                self.letters,
                key=b"" if mark.key is None else mark.key,  # a record of neither key nor value cannot be sent
                headers=letter_headers(mark),
                partition=place.partition,
            )
            for _, place, mark in marks
        ]
        for (_, _, mark), future in zip(marks, futures, strict=True):
            future.get(self._seconds)
            self.marked += 1
            self._done.add(mark.origin)


@contextlib.contextmanager
def open_courier(access: "Access", letters: str, seconds: float, now: int) -> Iterator[Courier]:
    """Open a courier. Raises BrokersError where the brokers are not reached, or stop answering.

    Args:
        access: How the brokers are reached.
        letters: Name of the topic of dead letters.
        seconds: To wait for each answer.
        now: When it is (µs).
    """
    from kafka import KafkaProducer

    from ettwatch_faust import connecting

    wait = int(seconds * 1000)
    settings: dict[str, Any] = {
        **access.client(),
        "acks": "all",
        "enable_idempotence": True,
        "allow_auto_create_topics": False,
        "max_request_size": _MAX_REQUEST,
        "bootstrap_timeout_ms": wait,
        "request_timeout_ms": wait,
        "max_block_ms": wait,
        "delivery_timeout_ms": 3 * wait,  # a broker that restarts is waited for
    }
    with connecting(access, lambda: Producers(lambda: KafkaProducer(**settings), seconds), seconds) as producers:
        yield Courier(letters, now, producers, 3 * seconds + 5)
