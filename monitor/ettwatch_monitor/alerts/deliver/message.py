"""What a channel gets: one state of an alert, with a name by which a receiver tells a doubled one."""

import hashlib
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ettwatch_monitor.alerts.alert import Alert

__all__ = ["ALERT_NAME", "Message", "as_json", "decode", "digest", "encode", "iso", "routing_labels"]

ALERT_NAME: Final = "EttwatchRegression"
"""The label alertname of an alert that brings none."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Message:
    """One state of an alert on its way to one channel."""

    alert: Alert
    episode: int
    """Names the time for which the alert fires: when it began to (µs), made unique for its key."""
    seq: int
    """0 for the first state of the episode, then rising."""
    silenced: bool = False
    """A silence matched, and the channel takes silenced alerts."""
    replaced: dict[str, str] | None = None
    """The labels under which the channel knows the alert, where they are others by now."""

    @property
    def id(self) -> str:
        """The same whenever this state is sent, and of no other."""
        name = f"{self.alert.key}\x00{self.episode}\x00{self.seq}"
        return hashlib.sha256(name.encode()).hexdigest()[:32]


def routing_labels(alert: Alert) -> dict[str, str]:
    """Return the labels by which an alert is routed and silenced: its own, alertname and severity."""
    return {"alertname": ALERT_NAME, **alert.labels, "severity": alert.severity}


def as_json(message: Message) -> dict[str, Any]:
    """Return a message as webhooks and the topic have it. Times are RFC 3339 in UTC."""
    alert = message.alert
    return {
        "v": 1,
        "id": message.id,
        "key": alert.key,
        "episode": message.episode,
        "seq": message.seq,
        "status": alert.status,
        "severity": alert.severity,
        "starts_at": iso(alert.starts_at),
        "ends_at": None if alert.ends_at is None else iso(alert.ends_at),
        "updated_at": iso(alert.updated_at),
        "silenced": message.silenced,
        "labels": routing_labels(alert),
        "title": alert.title,
        "body": alert.body,
        "facts": _finite(alert),
        "sql": [{"title": title, "query": query} for title, query in alert.sql],
    }


def iso(us: int) -> str:
    """Return a time in microseconds as RFC 3339 in UTC."""
    return (_EPOCH + timedelta(microseconds=us)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def encode(alert: Alert) -> str:
    """Return an alert as the outbox keeps it."""
    told: dict[str, Any] = {name: getattr(alert, name) for name in Alert.__dataclass_fields__}
    told |= {"facts": _finite(alert), "sql": [list(link) for link in alert.sql]}
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


def decode(text: str) -> Alert:
    """Return the alert that `encode` wrote."""
    told = json.loads(text)
    return Alert(**{**told, "sql": tuple((title, query) for title, query in told["sql"])})


def digest(alert: Alert) -> str:
    """Return a hash of what an alert says: of two states with one hash nobody needs the second."""
    told = json.loads(encode(alert))
    for name in ("starts_at", "updated_at"):
        told.pop(name)
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:32]


def _finite(alert: Alert) -> dict[str, float | str]:
    """The facts; what is no number in JSON is a text."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in alert.facts.items()
    }
