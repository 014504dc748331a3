"""Where a message goes when it is sent again. Pure."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from ettwatch_schemas import DeadLetter


class Route(NamedTuple):
    """To which topic, with which key, and to which partition (None: as the key says)."""

    topic: str
    key: bytes | None
    partition: int | None


@dataclass(frozen=True, slots=True)
class Router:
    """Says where a refused message goes.

    Attributes:
        events: The topic of events.
        others: The other topics from which messages are refused: what workers write for the sink.
    """

    events: str
    others: frozenset[str]

    def route(self, letter: DeadLetter) -> Route | None:
        """Return the way of a letter's message; None if it came from a topic of someone else.

        An event goes to the partition of its job, whatever key its producer gave it. What a worker wrote goes back
        to where it stood, and so does a message without a key that names no job.
        """
        if letter.topic == self.events:
            key = job_key(letter.value) or letter.key
            return Route(self.events, key, letter.partition if key is None else None)
        if letter.topic in self.others:
            return Route(letter.topic, letter.key, letter.partition)
        return None


def job_key(value: bytes | None) -> bytes | None:
    """Return the job that a message names, as a key; None if it names none, or several."""
    try:
        told = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    events = told if isinstance(told, list) else [told]
    jobs = {job for event in events if isinstance(event, dict) and isinstance(job := event.get("job"), str)}
    if len(jobs) != 1:
        return None
    try:
        return jobs.pop().encode() or None
    except UnicodeEncodeError:  # half a surrogate pair
        return None
