"""What a worker tells, as records of the topics after it. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from ettwatch_core import Publication
from ettwatch_faust.fitting import fitting
from ettwatch_faust.sender import Out
from ettwatch_faust.topics import Names
from ettwatch_schemas import DeadLetter, encode_update, letter_headers

__all__ = ["accepted", "letters", "publication"]

_CHUNK: Final = 512 << 10


def accepted(names: Names, partition: int, lines: Iterable[bytes]) -> Iterator[Out]:
    """Yield the events that count, many to a record."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        if chunk and size + len(line) > _CHUNK:
            yield Out(names.accepted, partition, None, b"\n".join(chunk))
            chunk, size = [], 0
        chunk.append(line)
        size += len(line) + 1
    if chunk:
        yield Out(names.accepted, partition, None, b"\n".join(chunk))


def letters(names: Names, refused: Iterable[DeadLetter]) -> Iterator[Out]:
    """Yield the dead letters."""
    for letter in map(fitting, refused):
        yield Out(names.dlq, 0, letter.key, letter.value, letter_headers(letter))


def publication(names: Names, partition: int, told: Publication) -> Iterator[Out]:
    """Yield what is published of a job."""
    if told.summary is not None:
        yield Out(names.jobs, partition, told.summary.job.encode(), told.summary.model_dump_json().encode())
    for topic, updates in (
        (names.attempts, told.attempts),
        (names.phases, told.phases),
        (names.segments, told.segments),
    ):
        for update in updates:
            yield Out(topic, partition, update.job.encode(), encode_update(update))
