"""Events of one process: who speaks, with which ids and times; out by the transport."""

import os
import weakref
from base64 import b32encode
from itertools import count
from time import monotonic
from typing import Final, Literal

from ettwatch.clock import Clock
from ettwatch.identity import Identity
from ettwatch.log import guarded
from ettwatch.settings import Settings
from ettwatch.transport import FileTransport
from ettwatch.wire import members

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
"""An event that would be longer is sent without its `attrs`."""
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
        self._new_ids()
        _outboxes.add(self)

    def speak_as(self, identity: Identity) -> None:
        """Send what follows under this identity, of the same job and host."""
        self.identity = identity
        who = {"job": identity.job, "rank": identity.rank, "host": identity.host, "source": self._source}
        self._of_the_job = members(who)[:-1] + "}"
        self._of_the_attempt = members(who | {"attempt": identity.attempt})[:-1] + "}"

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
        if self.muted:
            return
        event_id = self.new_id() if id is None else id
        when = self.clock.now() if ts is None else ts
        start = f'{{"v":1,"id":"{event_id}","kind":"{kind}","ts":{when},'
        about = self._of_the_job if kind in _OF_THE_JOB else self._of_the_attempt
        line = f"{start}{members(fields)}{about}\n".encode()
        if len(line) > MAX_LINE_BYTES and "attrs" in fields:
            fields["attrs"] = {"attrs_left_out_bytes": len(line)}
            line = f"{start}{members(fields)}{about}\n".encode()
        self.last_sent = monotonic()
        self._transport.put(line, kind not in _PASSING)

    def mute(self) -> None:
        """Send nothing from now on: the attempt is over."""
        self.muted = True

    def retry(self) -> None:
        """Write what is kept in memory, if the disk takes it again."""
        self._transport.retry()

    def close(self, budget_s: float) -> bool:
        """Write what is kept within about `budget_s` seconds, let go of the file, and tell whether all is written.

        Sending afterwards opens a new file.
        """
        return self._transport.close(budget_s)

    def after_fork(self) -> None:
        """Become the child's: a new file, new ids, nothing of the parent's unwritten events."""
        self._new_ids()
        self._transport.forget()


_outboxes: "weakref.WeakSet[Outbox]" = weakref.WeakSet()


@guarded(None)
def _after_fork_in_child() -> None:
    for outbox in list(_outboxes):
        outbox.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
