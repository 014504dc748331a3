"""What was taken in since the last flush: events that count, as lines, and dead letters."""

from typing import Any, Final

from ettwatch_faust import intake
from ettwatch_faust.lane import Lane
from ettwatch_faust.limit import DeadLetterLimit
from ettwatch_faust.live import Answer
from ettwatch_faust.metrics import Metrics
from ettwatch_schemas import DeadLetter

__all__ = ["Inbox"]

_MOST_EVENTS: Final = 50_000
_MOST_BYTES: Final = 64 << 20


class Inbox:
    """Folds records into lanes, and keeps what has to be sent of them.

    Args:
        limit: Of dead letters.
        metrics: The figures.

    Attributes:
        partitions: How many the events topic has.
        letters: Dead letters to send.
        lines: Events that count, as lines, by partition.
    """

    def __init__(self, limit: DeadLetterLimit, metrics: Metrics) -> None:
        self.partitions = 1
        self._limit = limit
        self._metrics = metrics
        # A counter of the metrics costs a microsecond each time: these are added to them with each flush.
        self._messages = self._events = self._duplicates = self._bytes = 0
        self.letters: list[DeadLetter] = []
        self.lines: dict[int, list[bytes]] = {}

    @property
    def full(self) -> bool:
        """Whether it should be flushed before more is taken in."""
        return self._events >= _MOST_EVENTS or self._bytes >= _MOST_BYTES

    def seen(self) -> None:
        """Count a record that came again."""
        self._duplicates += 1

    def take(self, lane: Lane, record: Any, now_us: int) -> None:
        """Take in one record. Raises Stopped, StateError."""
        value = record.value
        origin = intake.Origin(record.topic, record.partition, record.offset, record.key, value, now_us)
        taken = intake.read(origin)
        self._messages += 1
        self._bytes += len(value or b"")
        letters = taken.letters
        if taken.job is not None:
            if not lane.knows(taken.job) and not intake.is_home(record.key, record.partition, self.partitions):
                letters += intake.misplaced(origin, taken)
            else:
                answers = lane.take(taken.job, taken.events, record.offset, now_us)
                if answers is None:
                    self._duplicates += 1
                    return
                letters += self._sort_out(origin, taken, answers)
        if letters:
            letters = intake.few(letters)
            self.letters += letters
            self._bytes += sum(len(letter.value or b"") for letter in letters)
            for letter in letters:
                self._metrics.dead_letters.labels(letter.code).inc()
        self._limit.count(letters)

    def _sort_out(self, origin: intake.Origin, taken: intake.Taken, answers: list[Answer]) -> list[DeadLetter]:
        """Keep the events that count; return the dead letters of those that came too late."""
        counted = []
        letters = []
        for event, index, answer in zip(taken.events, taken.indexes, answers, strict=True):
            if answer is Answer.TAKEN:
                counted.append(index)
            elif answer is Answer.DUPLICATE:
                self._duplicates += 1
            else:
                letters.append(intake.late_letter(origin, answer.value, event, index))
        if counted:
            lines = self.lines.setdefault(origin.partition, [])
            lines += intake.accepted_lines(origin, taken, counted)
            self._events += len(counted)
        return letters

    def clear(self) -> None:
        """Begin anew, after what it holds was gathered or given up."""
        metrics = self._metrics
        metrics.messages.inc(self._messages)
        metrics.events.inc(self._events)
        metrics.duplicates.inc(self._duplicates)
        metrics.bytes_in.inc(self._bytes)
        self._messages = self._events = self._duplicates = self._bytes = 0
        self.letters, self.lines = [], {}
