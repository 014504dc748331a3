"""Alerts on their way to people and machines: an outbox that forgets nothing, and the channels."""

from ettwatch_monitor.alerts.deliver.alertmanager import AlertmanagerChannel
from ettwatch_monitor.alerts.deliver.build import ChannelError, make_channels
from ettwatch_monitor.alerts.deliver.channel import Channel, Plan, Refused, Unavailable
from ettwatch_monitor.alerts.deliver.delivery import ChannelHealth, Delivery
from ettwatch_monitor.alerts.deliver.file import OutboxError
from ettwatch_monitor.alerts.deliver.matchers import Matcher, MatcherError, parse_matchers
from ettwatch_monitor.alerts.deliver.message import Message, routing_labels
from ettwatch_monitor.alerts.deliver.outbox import Known, Outbox, Taken
from ettwatch_monitor.alerts.deliver.settings import (
    ChannelSettings,
    DeliverySettings,
    DeliverySettingsError,
    parse_delivery,
    read_delivery,
)
from ettwatch_monitor.alerts.deliver.silence import Silence
from ettwatch_monitor.alerts.deliver.silencebook import SilenceEntry
from ettwatch_monitor.alerts.deliver.table import TableChannel
from ettwatch_monitor.alerts.deliver.topic import TopicChannel
from ettwatch_monitor.alerts.deliver.webhook import SlackChannel, WebhookChannel, signature

__all__ = [
    "AlertmanagerChannel",
    "Channel",
    "ChannelError",
    "ChannelHealth",
    "ChannelSettings",
    "Delivery",
    "DeliverySettings",
    "DeliverySettingsError",
    "Known",
    "Matcher",
    "MatcherError",
    "Message",
    "Outbox",
    "OutboxError",
    "Plan",
    "Refused",
    "Silence",
    "SilenceEntry",
    "SlackChannel",
    "TableChannel",
    "Taken",
    "TopicChannel",
    "Unavailable",
    "WebhookChannel",
    "make_channels",
    "parse_delivery",
    "parse_matchers",
    "read_delivery",
    "routing_labels",
    "signature",
]
