"""Alertmanager, by its API v2. It tells alerts apart by their labels, so sending one again does no harm."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ettwatch_monitor.alerts.deliver.channel import Plan
from ettwatch_monitor.alerts.deliver.message import Message, iso, routing_labels
from ettwatch_monitor.alerts.deliver.post import Poster

__all__ = ["AlertmanagerChannel"]

_PATH: Final = "/api/v2/alerts"
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class AlertmanagerChannel:
    """Tells an Alertmanager what fires. It groups, routes and repeats."""

    name: str
    plan: Plan
    poster: Poster
    labels: Mapping[str, str] = field(default_factory=dict)
    """Added to those of each alert."""

    def send(self, messages: Sequence[Message], now: int) -> None:
        """Post states. Raises Unavailable or Refused."""
        alerts = [alert for message in messages for alert in self._told(message, now)]
        self.poster.post(json.dumps(alerts, ensure_ascii=False).encode(), path=_PATH)

    def close(self) -> None:
        """Let go of connections."""
        self.poster.close()

    def _told(self, message: Message, now: int) -> Iterator[dict[str, Any]]:
        alert = message.alert
        begin = iso(alert.starts_at)
        if message.replaced is not None:
            # Under other labels it is another alert: the one that it was ends.
            yield self._alert(message, message.replaced, begin, iso(max(alert.starts_at, alert.ends_at or now)))
        # While it fires, it ends only if nobody sends it again.
        ends_at = now + self.plan.hold if alert.ends_at is None else alert.ends_at
        yield self._alert(message, routing_labels(alert), begin, iso(max(alert.starts_at, ends_at)))

    def _alert(self, message: Message, labels: Mapping[str, str], begin: str, end: str) -> dict[str, Any]:
        alert = message.alert
        named = {_label(name): value for name, value in {**labels, **self.labels}.items() if value}
        return {
            "labels": {**named, "alert_key": alert.key},
            "annotations": {
                "summary": alert.title,
                "description": alert.body,
                **{f"sql_{at}": f"{title}: {query}" for at, (title, query) in enumerate(alert.sql, 1)},
            },
            "startsAt": begin,
            "endsAt": end,
        }


def _label(name: str) -> str:
    clean = _NO_NAME.sub("_", name) or "_"
    return f"_{clean}" if clean[0].isdigit() else clean
