"""What the tests of `ettwatch up` share: events as lines, clocks that stand still, a spool to follow."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from ettwatch_app.up.messages import Message
from ettwatch_app.up.place import Place
from ettwatch_app.up.settings import Limits
from ettwatch_app.up.spool import Spool
from ettwatch_schemas import Event, encode_event

SECOND = 1_000_000
HOUR = 3_600 * SECOND
T0 = 1_790_000_000 * SECOND
SDK_NAME = "job.host.17.1790000000000.{}.jsonl"


def beat(number: int, job: str = "job", ts: int | None = None, **more: object) -> bytes:
    """A heartbeat, `number` seconds after T0, as a line."""
    told = {"v": 1, "id": f"{job}-{number}", "kind": "heartbeat", "job": job, "attempt": 0}
    return json.dumps({**told, "ts": T0 + number * SECOND if ts is None else ts, **more}).encode() + b"\n"


def beats(*numbers: int, job: str = "job") -> bytes:
    return b"".join(beat(number, job) for number in numbers)


def as_lines(events: Iterable[Event]) -> bytes:
    return b"".join(encode_event(event) + b"\n" for event in events)


class Clock:
    """Time that goes on only when told."""

    def __init__(self, start_us: int = T0 + 30 * 24 * HOUR) -> None:
        self.us = start_us

    def now_us(self) -> int:
        return self.us

    def monotonic(self) -> float:
        return self.us / SECOND

    def wait(self, seconds: float) -> bool:
        self.us += round(seconds * SECOND)
        return False


class Follower:
    """A spool over one folder whose places live in memory, as the state file would keep them."""

    def __init__(
        self,
        *folders: Path,
        places: Iterable[Place] = (),
        limits: Limits | None = None,
        slack: int | None = None,
        once: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.rows: dict[int, Place] = {place.id: place for place in places if place.id is not None}
        self.spool = Spool(
            folders,
            list(self.rows.values()),
            limits or Limits(),
            slack=slack,
            once=once,
            clock=self.clock.now_us,
            monotonic=self.clock.monotonic,
        )

    def read(self, seconds: float = 1.0) -> Iterator[Message]:
        """Everything that is new after some seconds."""
        self.clock.wait(seconds)
        self.spool.scan()
        while self.spool.fill():
            for _, message in self.spool.take():
                yield message

    def ids(self, seconds: float = 1.0) -> list[str]:
        return [event.id for message in self.read(seconds) for event in message.events]

    def codes(self, seconds: float = 1.0) -> list[str]:
        return [refusal.code for message in self.read(seconds) for refusal in message.refusals]

    def commit(self) -> list[str]:
        """Keep the places; return the names of the files that are done with."""
        for place in self.spool.moved():
            place.id = place.id or 1 + max(self.rows, default=0)
            self.rows[place.id] = place
        self.spool.committed()
        removed = self.spool.sweep()
        for place in self.spool.to_forget():
            self.rows.pop(place.id or 0, None)
        return removed

    def restarted(self, *folders: Path, **more: object) -> "Follower":
        """The follower of the next process, which knows only what was committed."""
        self.spool.close()
        copies = [
            Place(p.id, p.path, p.device, p.inode, p.offset, p.line, p.head, p.tail, p.size, p.whole, p.gone_us)
            for p in self.rows.values()
        ]
        return Follower(*folders, places=copies, clock=self.clock, **more)  # type: ignore[arg-type]
