"""Delivery of newest states: what is due goes out in one call, and again before the receiver would forget it."""

from collections.abc import Sequence

from ettwatch_monitor.alerts.deliver.channel import Channel, Refused
from ettwatch_monitor.alerts.deliver.lane import Lane
from ettwatch_monitor.alerts.deliver.message import routing_labels
from ettwatch_monitor.alerts.deliver.outbox import Outbox
from ettwatch_monitor.alerts.deliver.silence import Silence, muted_until
from ettwatch_monitor.alerts.deliver.standing import Stand

__all__ = ["deliver_newest"]


def deliver_newest(outbox: Outbox, channel: Channel, lane: Lane, silences: Sequence[Silence], now: int) -> int | None:
    """Send what is due; return when to come again (µs), None where nothing stands.

    Raises Unavailable; what was not sent is due as before.
    """
    plan, standing = channel.plan, outbox.standing
    over: list[Stand] = []
    due: list[Stand] = []
    later: list[int] = []
    for stand in standing.due(channel.name, now, plan.resend):
        until = muted_until(silences, routing_labels(stand.message.alert), now) if plan.mutes else None
        if stand.until is not None and stand.until <= now:
            over.append(stand)
        elif stand.told or (until is None and stand.due_at <= now):
            due.append(stand)
        elif until is not None and not stand.firing:
            over.append(stand)  # silenced from its begin to its end
        else:
            later.append(stand.due_at if until is None else until)
    if over:
        standing.forget(channel.name, over)
    for at in range(0, len(due), plan.batch):
        if not _send(outbox, channel, lane, due[at : at + plan.batch], now):
            return lane.due_at
    following = standing.next(channel.name)
    return min(later if following is None else [*later, following], default=None)


def _send(outbox: Outbox, channel: Channel, lane: Lane, batch: Sequence[Stand], now: int) -> bool:
    """Send some states; return False, and send none, where the rate is used up."""
    plan = channel.plan
    if not lane.allows(plan.rate, now):
        return False
    try:
        channel.send([stand.message for stand in batch], now)
    except Refused as error:
        if len(batch) == 1:
            # It may be taken once it says something else, or once the receiver was upgraded.
            outbox.standing.failed(channel.name, batch[0], now + plan.resend, str(error))
            lane.answered()
            return True
        return all(_send(outbox, channel, lane, [stand], now) for stand in batch)
    outbox.standing.sent(channel.name, batch, now, plan.resend, plan.hold)
    lane.went(len(batch), now)
    return True
