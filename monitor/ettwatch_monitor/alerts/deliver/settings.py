"""The settings of delivery: the sections `channels` and `silences` of the file of rules, with line numbers."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import yaml

from ettwatch_core.nodes import Problem, compose, entries, line_of, near, text_of, unknown
from ettwatch_monitor.alerts.deliver import fields as read
from ettwatch_monitor.alerts.deliver.channel import Plan
from ettwatch_monitor.alerts.deliver.pace import Rate
from ettwatch_monitor.alerts.deliver.post import Login
from ettwatch_monitor.alerts.deliver.secret import Secret
from ettwatch_monitor.alerts.deliver.silence import Silence

__all__ = ["ChannelSettings", "DeliverySettings", "DeliverySettingsError", "Kind", "parse_delivery", "read_delivery"]

Kind = Literal["alertmanager", "webhook", "slack", "kafka", "clickhouse"]

_COMMON: Final = ("type", "match", "silences", "rate")
_URL: Final = ("url", "url_file", "url_env", "ca", "timeout")
_LOGIN: Final = ("token_file", "token_env", "user", "password_file", "password_env")
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "alertmanager": (*_COMMON, *_URL, *_LOGIN, "labels", "resend", "hold"),
    "webhook": (*_COMMON, "updates", *_URL, *_LOGIN, "secret_file", "secret_env"),
    "slack": (*_COMMON, "updates", *_URL),
    "kafka": (*_COMMON, "updates", "timeout"),
    "clickhouse": (*_COMMON, "updates"),
}
_MINUTE: Final = 60_000_000
_RATES: Final[Mapping[str, Rate]] = {"slack": Rate(20, _MINUTE), "webhook": Rate(60, _MINUTE)}
_RECORDS: Final = ("kafka", "clickhouse")
"""Channels that keep a record: of silenced alerts, too, and of every change."""
_SILENCE: Final = ("match", "from", "until", "comment")


class DeliverySettingsError(ValueError):
    """Settings of delivery are wrong; one line of text for each problem, each with file and line number."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        super().__init__("\n".join(f"{source}:{line}: {reason}" for line, reason in problems))
        self.source = source
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """What one channel is told."""

    name: str
    kind: Kind
    plan: Plan
    url: Secret | None = None
    login: Login = field(default_factory=Login)
    ca: str | None = None
    timeout_s: float = 10.0
    secret: Secret | None = None
    """Signs the messages of a webhook."""
    labels: tuple[tuple[str, str], ...] = ()
    """Added to those of each alert, for Alertmanager."""


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Channels and silences."""

    channels: tuple[ChannelSettings, ...] = ()
    silences: tuple[Silence, ...] = ()


def parse_delivery(text: str, source: str, env: Mapping[str, str] = os.environ) -> DeliverySettings:
    """Read the text of a file of rules; its other sections are left to others.

    Raises DeliverySettingsError with all problems.
    """
    problems: list[Problem] = []
    root = compose(text, problems)
    settings = DeliverySettings() if problems else read_delivery(root, problems, env)
    if problems:
        raise DeliverySettingsError(source, sorted(set(problems)))
    return settings


def read_delivery(
    root: yaml.Node | None, problems: list[Problem], env: Mapping[str, str] = os.environ
) -> DeliverySettings:
    """Read the sections `channels` and `silences` of a composed file; what is wrong goes to `problems`."""
    channels: list[ChannelSettings] = []
    silences: list[Silence] = []
    for name, _, node in entries(root, "the file", problems):
        if name == "channels":
            for channel, line, value in entries(node, "channels", problems):
                found = _channel(channel, line, value, env, problems)
                if found is not None:
                    channels.append(found)
        elif name == "silences":
            silences += _silences(node, problems)
    return DeliverySettings(tuple(channels), tuple(silences))


def _channel(
    name: str, line: int, node: yaml.Node, env: Mapping[str, str], problems: list[Problem]
) -> ChannelSettings | None:
    before = len(problems)
    told = {key: (at, value) for key, at, value in entries(node, f"channel {name!r}", problems)}
    if len(problems) > before:
        return None
    kind = text_of(told["type"][1], "type", problems) if "type" in told else None
    if kind is None or kind not in _KEYS:
        if kind is not None:
            reason = f"unknown type {kind!r}{near(kind, _KEYS)}; the types are {', '.join(_KEYS)}"
            problems.append(Problem(told["type"][0], reason))
        elif "type" not in told:
            problems.append(Problem(line, f"channel {name!r} has no type; give one of {', '.join(_KEYS)}"))
        return None
    problems += [unknown(key, at, _KEYS[kind]) for key, (at, _) in told.items() if key not in _KEYS[kind]]
    fields = {key: value for key, (_, value) in told.items()}
    usual = ChannelSettings(name, kind, _plan(kind, fields, problems))  # type: ignore[arg-type]
    if kind in _RECORDS:
        timeout = read.duration(fields, "timeout", 10_000_000, problems)
        return ChannelSettings(name, usual.kind, usual.plan, timeout_s=timeout / 1e6)
    return ChannelSettings(
        name,
        usual.kind,
        usual.plan,
        read.url(fields, line, env, problems, hidden=kind == "slack"),
        _login(fields, line, env, problems),
        text_of(fields["ca"], "ca", problems) if "ca" in fields else None,
        read.duration(fields, "timeout", 10_000_000, problems) / 1e6,
        read.secret(fields, "secret", env, problems),
        tuple(read.labels(fields, problems).items()),
    )


def _plan(kind: str, fields: Mapping[str, yaml.Node], problems: list[Problem]) -> Plan:
    usual = Plan()
    resend = read.duration(fields, "resend", usual.resend, problems)
    hold = read.duration(fields, "hold", max(usual.hold, 4 * resend), problems)
    if hold < 2 * resend:
        at = line_of(fields["hold"] if "hold" in fields else fields["resend"])
        problems.append(Problem(at, "hold must be at least twice resend: else one lost message resolves an alert"))
    return Plan(
        mode="newest" if kind == "alertmanager" else "each",
        match=read.matchers(fields, problems),
        updates=read.yes(fields, "updates", kind in _RECORDS, problems),
        mutes=read.yes(fields, "silences", kind not in _RECORDS, problems),
        rate=read.rate(fields, _RATES.get(kind), problems),
        batch={"slack": 1, "webhook": 1}.get(kind, 100),
        resend=resend,
        hold=hold,
    )


def _login(fields: Mapping[str, yaml.Node], line: int, env: Mapping[str, str], problems: list[Problem]) -> Login:
    token = read.secret(fields, "token", env, problems)
    password = read.secret(fields, "password", env, problems)
    user = text_of(fields["user"], "user", problems) if "user" in fields else None
    if token is not None and user is not None:
        problems.append(Problem(line, "give a token, or a user with a password, not both"))
    if password is not None and "user" not in fields:
        problems.append(Problem(line, "there is a password and no user; give user"))
    return Login(token, user, password)


def _silences(node: yaml.Node, problems: list[Problem]) -> list[Silence]:
    if not isinstance(node, yaml.SequenceNode):
        problems.append(Problem(line_of(node), "silences must be a list, such as [{match: ..., until: ...}]"))
        return []
    found: list[Silence] = []
    for item in node.value:
        before = len(problems)
        fields: dict[str, yaml.Node] = {}
        for key, line, value in entries(item, "a silence", problems):
            if key in _SILENCE:
                fields[key] = value
            else:
                problems.append(unknown(key, line, _SILENCE))
        match = read.matchers(fields, problems)
        until = read.instant(fields, "until", problems)
        begin = read.instant(fields, "from", problems)
        comment = text_of(fields["comment"], "comment", problems) if "comment" in fields else ""
        if len(problems) == before and (not match or until is None):
            problems.append(Problem(line_of(item), "a silence needs match and until"))
        if len(problems) > before or until is None:
            continue
        if begin is not None and begin >= until:
            problems.append(Problem(line_of(item), "the silence ends before it begins; correct from or until"))
            continue
        found.append(Silence(match, until, begin or 0, comment or ""))
    return found
