"""Events as producers send them: what a job has every second or so, in one message."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ettwatch_schemas import MAX_MESSAGE_BYTES, Event, encode_event
from ettwatch_sim.life.dice import US

_MOST_EVENTS: Final = 500


@dataclass(frozen=True, slots=True)
class Message:
    """A message of one job.

    Attributes:
        ts: When it is sent (µs, simulated).
        job: Whose; the key.
        events: How many events it holds.
        value: An event, or an array of events, as JSON.
    """

    ts: int
    job: str
    events: int
    value: bytes


def batches(events: Iterable[Event], *, alone: bool = False) -> Iterator[Message]:
    """Yield the messages of some events as they arrive; with `alone` each event is a message.

    What arrives within a second (simulated) goes out together, an array for each job. An event that is late goes with
    what arrives when it does.
    """
    clock = 0
    jobs: dict[str, list[bytes]] = {}
    for event in events:
        second = event.ts // US
        if alone:
            clock = max(clock, second)
            yield Message(clock * US, event.job, 1, encode_event(event))
            continue
        if second > clock:
            yield from _sent(clock, jobs)
            jobs = {}
            clock = second
        jobs.setdefault(event.job, []).append(encode_event(event))
    yield from _sent(clock, jobs)


def _sent(clock: int, jobs: dict[str, list[bytes]]) -> Iterator[Message]:
    for job, lines in jobs.items():
        part: list[bytes] = []
        size = 0
        for line in lines:
            if part and (len(part) == _MOST_EVENTS or size + len(line) > MAX_MESSAGE_BYTES // 2):
                yield _message(clock, job, part)
                part, size = [], 0
            part.append(line)
            size += len(line) + 1
        yield _message(clock, job, part)


def _message(clock: int, job: str, lines: list[bytes]) -> Message:
    value = lines[0] if len(lines) == 1 else b"[" + b",".join(lines) + b"]"
    return Message(clock * US, job, len(lines), value)
