"""Channels made of their settings."""

import os
from collections.abc import Callable, Iterable, Mapping

from ettwatch_clickhouse import Store
from ettwatch_faust import Access, BrokersError, SettingError, TopicSettings, names
from ettwatch_monitor.alerts.deliver.alertmanager import AlertmanagerChannel
from ettwatch_monitor.alerts.deliver.channel import Channel
from ettwatch_monitor.alerts.deliver.post import Poster
from ettwatch_monitor.alerts.deliver.settings import ChannelSettings
from ettwatch_monitor.alerts.deliver.table import TableChannel
from ettwatch_monitor.alerts.deliver.topic import TopicChannel
from ettwatch_monitor.alerts.deliver.webhook import SlackChannel, WebhookChannel

__all__ = ["ChannelError", "make_channels"]


class ChannelError(Exception):
    """A channel cannot be made; the message says which, why, and what to do."""


def make_channels(
    settings: Iterable[ChannelSettings],
    connect: Callable[[], Store] | None = None,
    env: Mapping[str, str] = os.environ,
) -> list[Channel]:
    """Return the channels; none connects before it sends.

    Args:
        settings: Of each.
        connect: Connects to ClickHouse, for a channel of that type.
        env: Where the variables of the brokers are read.

    Raises ChannelError.
    """
    return [_channel(each, connect, env) for each in settings]


def _channel(told: ChannelSettings, connect: Callable[[], Store] | None, env: Mapping[str, str]) -> Channel:
    if told.kind == "clickhouse":
        if connect is None:
            raise ChannelError(
                f"channel {told.name!r}: no ClickHouse is at hand to keep alerts in; leave the channel out"
            )
        return TableChannel(told.name, told.plan, connect)
    if told.kind == "kafka":
        try:
            access, topics = Access.read(env), TopicSettings.read(env)
        except (BrokersError, SettingError) as error:
            raise ChannelError(f"channel {told.name!r}: {error}") from None
        return TopicChannel(told.name, told.plan, access, names(topics.prefix).alerts, told.timeout_s)
    if told.url is None:
        raise ChannelError(f"channel {told.name!r} has no address")
    poster = Poster(told.url, told.login, told.ca, told.timeout_s)
    if told.kind == "alertmanager":
        return AlertmanagerChannel(told.name, told.plan, poster, dict(told.labels))
    if told.kind == "webhook":
        return WebhookChannel(told.name, told.plan, poster, told.secret)
    return SlackChannel(told.name, told.plan, poster)
