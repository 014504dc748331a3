"""Events of one process: who speaks, with which ids and times; out by the transport."""

import os
import weakref
from base64 import b32encode
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal

from ettwatch.clock import Clock
from ettwatch.identity import Identity
from ettwatch.log import guarded
from ettwatch.settings import Settings
from ettwatch.transport import FileTransport
from ettwatch.wire import members

if TYPE_CHECKING:
    from ettwatch.delivery.courier import Courier

Kind = Literal[
    "job_submitted",
    "attempt_started",
    "phase_started",
    "phase_ended",
    "training_started",
    "progress",
    "checkpoint_durable",
    "training_ended",
    "attempt_ended",
    "job_ended",
    "heartbeat",
]

MAX_LINE_BYTES: Final = 256 * 1024
"""A phase that would be longer is told of without its `attrs`."""
_PASSING: Final = ("progress", "heartbeat")
_OF_THE_JOB: Final = ("job_submitted", "job_ended")


class Outbox:
    """Sends events of one job from one process. Safe for threads; a forked child gets a file and ids of its own."""

    def __init__(
        self, identity: Identity, settings: Settings, clock: Clock, source: Literal["trainer", "launcher"]
    ) -> None:
        self.clock = clock
        self.last_sent = monotonic()
        self.muted = False
        self._source = source
        self.speak_as(identity)
        self._transport = FileTransport(settings, identity.job, identity.host)
        self._courier = _courier(settings, identity.host, self._transport)
        self._new_ids()
        _outboxes.add(self)

    def speak_as(self, identity: Identity) -> None:
        """Send what follows under this identity, of the same job and host."""
        self.identity = identity
        who = {"job": identity.job, "rank": identity.rank, "host": identity.host, "source": self._source}
        self._of_the_job = members(who)[:-1] + "}\n"
        self._of_the_attempt = members(who | {"attempt": identity.attempt})[:-1] + "}\n"

    def _new_ids(self) -> None:
        # 48 random bits for the process, then a counter: unique over processes, restarts and forks.
        self._prefix = b32encode(os.urandom(6)).decode().rstrip("=").lower()
        self._count = count(1)

    def new_id(self) -> str:
        """Return an id that no other event or span has."""
        return f"{self._prefix}-{next(self._count)}"

    @guarded(None)
    def send(self, kind: Kind, ts: int | None = None, *, id: str | None = None, **fields: object) -> None:
        """Send an event. A boundary event (all but progress and heartbeat) is on disk on return.

        `ts` is in microseconds, now if None. `fields` are the kind's own; those that are None are left out.
        """
        event_id = self.new_id() if id is None else id
        when = self.clock.now() if ts is None else ts
        about = self._of_the_job if kind in _OF_THE_JOB else self._of_the_attempt
        start = f'{{"v":1,"id":"{event_id}","kind":"{kind}","ts":{when},'
        self._put(f"{start}{members(fields)}{about}".encode(), kind not in _PASSING)

    # Phases are told of often, and what they say needs no escaping but for `attrs`: so not by `send`.

    def span_started(
        self, span: str, phase: str, parent: str | None, background: bool, attrs: dict[str, object] | None
    ) -> None:
        """Send the start of a phase; `phase` is one, `span` and `parent` are ids of this outbox."""
        more = f'"parent":"{parent}",' if parent else ""
        if background:
            more += '"background":true,'
        ts = self.clock.now()
        self._put_with(
            f'{{"v":1,"id":"{span}","kind":"phase_started","ts":{ts},"span":"{span}","phase":"{phase}",{more}', attrs
        )

    def span_ended(self, span: str, outcome: Literal["ok", "error"], attrs: dict[str, object] | None) -> None:
        """Send the end of a phase."""
        start = f'{{"v":1,"id":"{self.new_id()}","kind":"phase_ended","ts":{self.clock.now()},'
        self._put_with(f'{start}"span":"{span}","outcome":"{outcome}",', attrs)

    def _put_with(self, start: str, attrs: dict[str, object] | None) -> None:
        if not attrs:
            self._put(f"{start}{self._of_the_attempt}".encode(), True)
            return
        line = f"{start}{members({'attrs': attrs})}{self._of_the_attempt}".encode()
        if len(line) > MAX_LINE_BYTES:
            left_out = members({"attrs": {"attrs_left_out_bytes": len(line)}})
            line = f"{start}{left_out}{self._of_the_attempt}".encode()
        self._put(line, True)

    def _put(self, line: bytes, boundary: bool) -> None:
        if self.muted:
            return
        self.last_sent = monotonic()
        self._transport.put(line, boundary)
        if self._courier is not None:
            self._courier.wake()

    def mute(self) -> None:
        """Send nothing from now on: the attempt is over."""
        self.muted = True

    def retry(self) -> None:
        """Write what is kept in memory, if the disk takes it again."""
        self._transport.retry()

    def close(self, budget_s: float) -> bool:
        """Write what is kept within about `budget_s` seconds, let go of the file, and tell whether all is written.

        What goes to Kafka is sent in that time, too; what is not stays in the spool folder and goes later. Sending
        afterwards opens a new file.
        """
        deadline = monotonic() + budget_s
        written = self._transport.close(budget_s)
        if self._courier is not None:
            self._courier.flush(max(deadline - monotonic(), 0.0))
            written = not self._transport.waiting
        if not written:
            self._transport.give_up()
        return written

    @property
    def drops(self) -> dict[str, int]:
        """How many events were given up, by reason."""
        return self._transport.drops.counts()

    def after_fork(self) -> None:
        """Become the child's: a new file, new ids, nothing of the parent's unwritten events."""
        self._new_ids()
        self._transport.forget()
        if self._courier is not None:
            self._courier.after_fork()


def _courier(settings: Settings, host: str, transport: FileTransport) -> "Courier | None":
    """Return who brings the events to Kafka, where that is wanted; nothing of it is imported elsewhere."""
    if settings.brokers is None or settings.disabled:
        return None
    from ettwatch.delivery.courier import Courier

    return Courier(settings, host, transport)


_outboxes: "weakref.WeakSet[Outbox]" = weakref.WeakSet()


@guarded(None)
def _after_fork_in_child() -> None:
    for outbox in list(_outboxes):
        outbox.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
