"""The topic of dead letters, read from its beginning to the end that it had when it was opened."""

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ettwatch_app.dlq.letters import Letters, Place, Wanted
from ettwatch_schemas import DeadLetter, UpdateError, read_letter

if TYPE_CHECKING:
    from ettwatch_faust import Access

Progress = Callable[[int, int], None]
"""Is told how much is done, and of how much."""

_FETCH_BYTES: Final = 8 << 20
_POLL_MS: Final = 250


def _ignored(done: int, total: int) -> None:
    """Tell nobody."""


class Record(NamedTuple):
    """A record of the topic: its letter, or the line that says why it is none."""

    place: Place
    letter: DeadLetter | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LetterTopic:
    """The topic, as long as it is open. Nothing is committed, and no group is joined.

    Attributes:
        name: Its name.
        spans: Of each partition its first offset, and the one after its last.
    """

    name: str
    spans: Mapping[int, tuple[int, int]]
    _consumer: Any
    _seconds: float
    _where: str

    @property
    def length(self) -> int:
        """Offsets between its beginning and its end; some may hold no record."""
        return sum(end - begin for begin, end in self.spans.values())

    def survey(self, wanted: Wanted, progress: Progress) -> Letters:
        """Return which of the wanted letters there are."""
        found = Letters(wanted)
        for place, letter, problem in self.read(progress):
            if letter is None:
                found.strange(place, problem)
            else:
                found.add(place, letter)
        return found

    def letters(self, progress: Progress = _ignored) -> Iterator[tuple[Place, DeadLetter]]:
        """Yield every letter with its bytes, and no marks."""
        for record in self.read(progress):
            if record.letter is not None and record.letter.handled is None:
                yield record.place, record.letter

    def pick(self, places: Collection[Place]) -> Iterator[tuple[Place, DeadLetter]]:
        """Yield the letters in some places with their bytes."""
        return ((place, letter) for place, letter in self.letters() if place in places)

    def read(self, progress: Progress) -> Iterator[Record]:
        """Yield every record, in the order of each partition; `progress` is told how many offsets are behind.

        Raises BrokersError where no partition has moved for the time limit, and what kafka-python raises.
        """
        from kafka import TopicPartition

        from ettwatch_faust import BrokersError

        # Positions end it, not records: behind the last record may lie what was aborted or compacted away.
        left = {TopicPartition(self.name, number): span for number, span in self.spans.items() if span[0] < span[1]}
        at = {partition: begin for partition, (begin, _) in left.items()}
        self._consumer.assign(list(left))
        self._consumer.resume(*left)  # an assignment that was there before is kept, pauses and all
        for partition, begin in at.items():
            self._consumer.seek(partition, begin)
        moved = time.monotonic()
        while left:
            for partition, records in self._consumer.poll(timeout_ms=_POLL_MS).items():
                for record in records:
                    if record.offset < left[partition][1]:
                        yield _record(record)
                moved = time.monotonic()  # what is done with the records takes its own time
            for partition, (_, end) in list(left.items()):
                position = min(self._consumer.position(partition, timeout_ms=int(self._seconds * 1000)) or 0, end)
                if position > at[partition]:
                    moved = time.monotonic()
                    at[partition] = position
                if position >= end:
                    del left[partition]
                    self._consumer.pause(partition)
            progress(sum(position - self.spans[each.partition][0] for each, position in at.items()), self.length)
            if left and time.monotonic() - moved > self._seconds:
                raise BrokersError(
                    f"the Kafka brokers at {self._where} sent nothing of {self.name} for {self._seconds:g} s; "
                    "try again, and look at their logs"
                )


@contextlib.contextmanager
def open_topic(access: "Access", name: str, seconds: float) -> Iterator[LetterTopic]:
    """Open the topic of dead letters. Raises BrokersError where the brokers are not reached, or stop answering.

    Args:
        access: How the brokers are reached.
        name: Of the topic, which has to be there.
        seconds: To wait for each answer.
    """
    from kafka import KafkaConsumer, TopicPartition

    from ettwatch_faust import BrokersError, connecting

    wait = int(seconds * 1000)
    settings: dict[str, Any] = {
        **access.client(),
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
        "allow_auto_create_topics": False,
        "max_partition_fetch_bytes": _FETCH_BYTES,
        "check_crcs": False,  # in Python this takes longer than all the rest; the brokers have checked them
        "bootstrap_timeout_ms": wait,
        "request_timeout_ms": max(wait, 1_000),  # more than a fetch may wait for records
    }
    with connecting(access, lambda: KafkaConsumer(**settings), seconds) as consumer:
        where = ", ".join(access.brokers)
        numbers = consumer.partitions_for_topic(name)
        if not numbers:
            raise BrokersError(f"the Kafka brokers at {where} do not tell the partitions of {name}; try again")
        partitions = [TopicPartition(name, number) for number in sorted(numbers)]
        begins = consumer.beginning_offsets(partitions, timeout_ms=wait)
        ends = consumer.end_offsets(partitions, timeout_ms=wait)
        spans = {each.partition: (begins[each], ends[each]) for each in partitions}
        yield LetterTopic(name, spans, consumer, seconds, where)


def _record(record: Any) -> Record:
    place = Place(record.partition, record.offset)
    try:
        return Record(place, read_letter(record.key, record.value, record.headers))
    except UpdateError as error:
        return Record(place, None, str(error))
