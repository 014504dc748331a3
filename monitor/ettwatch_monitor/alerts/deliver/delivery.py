"""Delivery: what the outbox holds, brought to the channels. Told the time; it never waits."""

import fcntl
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import random
from types import TracebackType
from typing import Final, NamedTuple, Self

from ettwatch_monitor.alerts.alert import Alert
from ettwatch_monitor.alerts.deliver.channel import Channel, Refused, Unavailable
from ettwatch_monitor.alerts.deliver.each import deliver_each
from ettwatch_monitor.alerts.deliver.file import OutboxError, told
from ettwatch_monitor.alerts.deliver.lane import Lane
from ettwatch_monitor.alerts.deliver.message import Message, routing_labels
from ettwatch_monitor.alerts.deliver.newest import deliver_newest
from ettwatch_monitor.alerts.deliver.outbox import Outbox, Taken
from ettwatch_monitor.alerts.deliver.silence import Silence, muted_until

__all__ = ["ChannelHealth", "Delivery"]

_PRUNE: Final = 3_600_000_000


class ChannelHealth(NamedTuple):
    """How a channel fares. Times are microseconds since the Unix epoch."""

    channel: str
    waiting: int
    """Messages that were not delivered yet; with mode `newest` alerts that the channel has not heard of."""
    oldest: int | None
    """Since when the oldest of them waits."""
    failing_since: int | None
    error: str | None
    """Why it failed the last time; None where it works."""
    refused: int
    """Messages that the receiver will never take."""
    sent: int
    """Messages that it took, since the outbox was made."""
    due_at: int
    """When it is tried again, where it fails or its rate is used up; 0 else."""
    silenced: int = 0
    """How many of the waiting are kept back by a silence, as of the last delivery."""


class Delivery:
    """Takes alerts, and brings them to the channels. For one thread, and one process for an outbox at a time.

    Args:
        outbox: What is remembered; closed with this.
        channels: Where to, each with a name of its own; closed with this.
        silences: Those of the settings; those of the outbox count as well.
        now: The time (µs since the Unix epoch).
        chance: A number from 0 to 1, another one each time.

    Raises OutboxError where another process delivers from this outbox.
    """

    def __init__(
        self,
        outbox: Outbox,
        channels: Sequence[Channel],
        silences: Iterable[Silence] = (),
        *,
        now: int,
        chance: Callable[[], float] = random,
    ) -> None:
        self._outbox = outbox
        self._chance = chance
        self._lock = -1
        self._pruned_at = now
        self._channels: tuple[Channel, ...] = ()
        self._silences: tuple[Silence, ...] = ()
        self._silenced: dict[str, int] = {}
        try:
            self._lock = _alone(f"{outbox.path}.lock")
            self.reconfigure(channels, silences, now)
        except BaseException:
            self.close()
            raise

    def reconfigure(self, channels: Sequence[Channel], silences: Iterable[Silence], now: int) -> None:
        """Go on with other channels and silences. A new channel hears of what fires; one that is gone is forgotten.

        Raises ValueError where two channels have one name, OutboxError.
        """
        names = [channel.name for channel in channels]
        if len(set(names)) < len(names):
            raise ValueError(f"two channels have one name: {', '.join(sorted(names))}")
        for channel in self._channels:
            if channel not in channels:
                channel.close()
        self._channels, self._silences = tuple(channels), tuple(silences)
        self._plans = {channel.name: channel.plan for channel in channels}
        with told(self._outbox.path):
            self._outbox.adopt(self._plans, now)

    def put(self, alert: Alert, now: int) -> Taken:
        """Take the newest state of an alert. It is on the disk when this returns. Raises OutboxError."""
        with told(self._outbox.path):
            return self._outbox.put(alert, self._plans, now)

    def deliver_all(self, now: int) -> int | None:
        """Send what is due; return when to come again at the latest (µs), None where nothing waits.

        It ends after one failure of a channel; how each fares tells `health`. Raises OutboxError where the outbox
        cannot be read or written; what was sent and could not be noted is sent again, under the same name.
        """
        with told(self._outbox.path):
            return self._deliver_all(now)

    def _deliver_all(self, now: int) -> int | None:
        if now - self._pruned_at >= _PRUNE:
            self._outbox.prune(now)
            self._pruned_at = now
        silences = (*self._silences, *self._outbox.silences(now))
        times = [self._deliver(channel, silences, now) for channel in self._channels]
        self._silenced = {channel.name: self._kept_back(channel, silences, now) for channel in self._channels}
        return min((time for time in times if time is not None), default=None)

    def _deliver(self, channel: Channel, silences: Sequence[Silence], now: int) -> int | None:
        lane = Lane.load(self._outbox.connection, channel.name, channel.plan.mode)
        # A clock that was set back must not stop a channel for long: no pause is longer than this.
        if now < lane.due_at <= now + 2 * _PRUNE:
            return lane.due_at
        before = replace(lane)
        deliver = deliver_newest if channel.plan.mode == "newest" else deliver_each
        guarded = _Guarded(channel)
        try:
            due_at = deliver(self._outbox, guarded, lane, silences, now)
        except Unavailable as error:
            lane.failed(str(error), error.after, self._chance(), now)
            due_at = lane.due_at
        if lane != before:
            lane.save(self._outbox.connection)
        return due_at

    def _kept_back(self, channel: Channel, silences: Sequence[Silence], now: int) -> int:
        """Count the alerts that a channel was not told of because of a silence."""
        if not silences or not channel.plan.mutes:
            return 0
        if channel.plan.mode == "newest":
            stands = self._outbox.standing.due(channel.name, now, channel.plan.resend)
            untold = [stand.message.alert for stand in stands if not stand.told]
        else:
            untold = [each.message.alert for each in self._outbox.queue.waiting(channel.name) if each.fresh]
        return sum(muted_until(silences, routing_labels(alert), now) is not None for alert in untold)

    def health(self) -> list[ChannelHealth]:
        """Return how each channel fares. Raises OutboxError."""
        with told(self._outbox.path):
            return self._health()

    def firing(self) -> list[Alert]:
        """Return the alerts that the channels hold for firing. Raises OutboxError."""
        with told(self._outbox.path):
            return [known.alert for known in self._outbox.firing()]

    def _health(self) -> list[ChannelHealth]:
        found = []
        for channel in self._channels:
            lane = Lane.load(self._outbox.connection, channel.name, channel.plan.mode)
            if channel.plan.mode == "newest":
                waiting, oldest, refused = self._outbox.standing.counts(channel.name)
            else:
                counts = self._outbox.queue.counts(channel.name)
                waiting, refused = counts.get("waiting", 0), counts.get("refused", 0)
                oldest = self._outbox.queue.oldest(channel.name)
            more = (lane.failing_since, lane.error, refused, lane.sent, lane.due_at)
            silenced = self._silenced.get(channel.name, 0)
            found.append(ChannelHealth(channel.name, waiting, oldest, *more, silenced))
        return found

    def close(self) -> None:
        """Close channels and outbox. Does nothing the second time."""
        for channel in self._channels:
            channel.close()
        self._channels = ()
        self._outbox.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class _Guarded:
    """A channel whose faults of its own are told as failures: one channel must not stop the others."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.name = channel.name
        self.plan = channel.plan

    def send(self, messages: Sequence[Message], now: int) -> None:
        try:
            self._channel.send(messages, now)
        except (Refused, Unavailable):
            raise
        except Exception as error:
            # Its text may hold an address with a secret in it.
            raise Unavailable(f"{type(error).__name__} in the channel; this is a fault of ettwatch") from error

    def close(self) -> None:
        self._channel.close()


def _alone(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise OutboxError(f"cannot open {path}: {error.strerror}; choose a folder that can be written to") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        what = path.removesuffix(".lock")
        raise OutboxError(f"another process delivers from the outbox {what}; stop it, or name another outbox") from None
    return fd
