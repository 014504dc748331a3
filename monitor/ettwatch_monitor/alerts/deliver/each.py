"""Delivery state by state: the oldest message first, each once, until one fails or the rate is used up."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ettwatch_monitor.alerts.deliver.channel import Channel, Refused
from ettwatch_monitor.alerts.deliver.lane import Lane
from ettwatch_monitor.alerts.deliver.message import routing_labels
from ettwatch_monitor.alerts.deliver.outbox import Outbox
from ettwatch_monitor.alerts.deliver.queue import Waiting
from ettwatch_monitor.alerts.deliver.silence import Silence, muted_until

__all__ = ["deliver_each"]


def deliver_each(outbox: Outbox, channel: Channel, lane: Lane, silences: Sequence[Silence], now: int) -> int | None:
    """Send what waits; return when to come again (µs), None where nothing waits.

    Raises Unavailable; what was not sent waits on.
    """
    held = _Held(outbox, channel, silences, now)
    batch: list[Waiting] = []
    for waiting in held.told():
        batch.append(waiting)
        if len(batch) == channel.plan.batch:
            if not _send(outbox, channel, lane, batch, now):
                return lane.due_at
            batch = []
    if batch and not _send(outbox, channel, lane, batch, now):
        return lane.due_at
    return held.until


class _Held:
    """The messages of a channel without those that silences keep back."""

    def __init__(self, outbox: Outbox, channel: Channel, silences: Sequence[Silence], now: int) -> None:
        self._outbox = outbox
        self._channel = channel
        self._silences = silences
        self._now = now
        self.until: int | None = None
        """When the first silence ends that keeps something back (µs)."""

    def told(self) -> Iterator[Waiting]:
        """Yield what is to be told, the oldest first.

        A silence keeps back that an alert fires, as long as nobody was told of it. Where the alert ends before the
        silence does, nobody hears of either. What was told to fire is told to have ended, whatever is silenced.
        """
        kept: dict[tuple[str, int], list[int]] = {}
        for waiting in self._outbox.queue.waiting(self._channel.name):
            alert, which = waiting.message.alert, (waiting.message.alert.key, waiting.message.episode)
            until = muted_until(self._silences, routing_labels(alert), self._now)
            if not self._channel.plan.mutes:
                yield waiting._replace(message=replace(waiting.message, silenced=until is not None))
            elif which in kept and not waiting.firing:
                numbers = [*kept.pop(which), waiting.number]
                self._outbox.queue.done(numbers, "silenced", self._now)
            elif which in kept:
                kept[which].append(waiting.number)
            elif until is not None and waiting.firing and waiting.fresh:
                kept[which] = [waiting.number]
                self.until = until if self.until is None else min(self.until, until)
            else:
                yield waiting


def _send(outbox: Outbox, channel: Channel, lane: Lane, batch: Sequence[Waiting], now: int) -> bool:
    """Send some messages; return False, and send none, where the rate is used up."""
    if not lane.allows(channel.plan.rate, now):
        return False
    numbers = [waiting.number for waiting in batch]
    outbox.queue.trying(numbers)
    try:
        channel.send([waiting.message for waiting in batch], now)
    except Refused as error:
        if len(batch) == 1:
            outbox.queue.done(numbers, "refused", now, str(error))
            lane.answered()
            return True
        # One of them is to blame: it must not take the others with it.
        return all(_send(outbox, channel, lane, [waiting], now) for waiting in batch)
    outbox.queue.done(numbers, "sent", now)
    lane.went(len(batch), now)
    return True
