"""Any receiver of JSON over HTTP; and chats that take Slack's format."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ettwatch_monitor.alerts.deliver.channel import Plan
from ettwatch_monitor.alerts.deliver.message import Message, as_json, iso
from ettwatch_monitor.alerts.deliver.post import Poster
from ettwatch_monitor.alerts.deliver.secret import Secret

__all__ = ["SlackChannel", "WebhookChannel", "signature"]

_COLOURS: Final = {"critical": "#c0392b", "warning": "#e67e22", "info": "#2980b9"}
_RESOLVED: Final = "#27ae60"
_MOST_CHARS: Final = 3_000


def signature(secret: str, at: int, body: bytes) -> str:
    """Return the value of X-Ettwatch-Signature: `t=SECONDS,v1=HEX`.

    HEX is the HMAC-SHA256 under the secret of the seconds since the Unix epoch, a dot, and the body.
    """
    seconds = at // 1_000_000
    mac = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={mac.hexdigest()}"


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """Posts each message as a JSON object. The header X-Ettwatch-Id is the id of the message."""

    name: str
    plan: Plan
    poster: Poster
    secret: Secret | None = None
    """With it, every message is signed."""

    def send(self, messages: Sequence[Message], now: int) -> None:
        """Post messages, one by one. Raises Unavailable or Refused."""
        for message in messages:
            body = json.dumps(as_json(message), ensure_ascii=False).encode()
            headers = {"X-Ettwatch-Id": message.id}
            if self.secret is not None:
                headers["X-Ettwatch-Signature"] = signature(self.secret.read(), now, body)
            self.poster.post(body, headers)

    def close(self) -> None:
        """Let go of connections."""
        self.poster.close()


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """Posts each message to an incoming webhook of Slack, Mattermost or Rocket.Chat."""

    name: str
    plan: Plan
    poster: Poster

    def send(self, messages: Sequence[Message], now: int) -> None:
        """Post messages, one by one. Raises Unavailable or Refused."""
        for message in messages:
            self.poster.post(json.dumps(_chat(message), ensure_ascii=False).encode())

    def close(self) -> None:
        """Let go of connections."""
        self.poster.close()


def _chat(message: Message) -> dict[str, Any]:
    alert = message.alert
    word = f"FIRING {alert.severity}" if alert.firing else "RESOLVED"
    ended = "" if alert.ends_at is None else f", until {iso(alert.ends_at)[:16]}Z"
    queries = "".join(f"\n{_text(title)}:\n```{_code(query)}```" for title, query in alert.sql) if alert.firing else ""
    body = _text(_cut(alert.body))
    return {
        "text": f"*{word}* {_text(alert.title)}",
        "attachments": [
            {
                "color": _COLOURS[alert.severity] if alert.firing else _RESOLVED,
                "fallback": _text(alert.title),
                "text": body + (queries if len(body) + len(queries) <= 2 * _MOST_CHARS else ""),
                "footer": f"{_text(alert.key)}, since {iso(alert.starts_at)[:16]}Z{ended}",
                "mrkdwn_in": ["text"],
            }
        ],
    }


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + "..."


def _code(text: str) -> str:
    """A text that ends no block of code."""
    return _text(text.replace("```", "'''"))


def _text(text: str) -> str:
    """A text in which nothing is a command of the chat, such as a call of everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
