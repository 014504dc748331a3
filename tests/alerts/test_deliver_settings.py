"""The sections `channels` and `silences` of the file of rules: what is read, and what is wrong with its line."""

import pytest

from ettwatch_monitor.alerts.deliver import (
    AlertmanagerChannel,
    ChannelError,
    DeliverySettings,
    DeliverySettingsError,
    SlackChannel,
    TableChannel,
    TopicChannel,
    WebhookChannel,
    make_channels,
    parse_delivery,
    parse_matchers,
)
from ettwatch_monitor.alerts.deliver.pace import Rate
from support.delivery import MINUTE, SECOND

TEXT = """\
rules: {of: others}
channels:
  am:
    type: alertmanager
    url: http://alertmanager:9093/prefix
    labels: {site: eu}
    resend: 30s
    hold: 10m
    user: ops
    password_env: OPS_PASSWORD
  hook:
    type: webhook
    url_env: OPS_HOOK
    secret_file: /run/secrets/hook
    token_file: /run/secrets/token
    match: [team="ads", 'severity=~"warning|critical"']
    rate: 10/h
    updates: true
  chat: {type: slack, url_file: /run/secrets/chat, silences: false}
  log: {type: kafka, timeout: 3s}
  table: {type: clickhouse, rate: none}
silences:
  - {match: 'team=ads, cluster="eu-1"', until: 2026-12-01T00:00:00Z, from: 2026-11-30T22:00:00+01:00, comment: move}
"""


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(DeliverySettingsError) as caught:
        parse_delivery(text, "rules.yaml", {})
    return [(line, reason) for line, reason in caught.value.problems]


def test_all_that_can_be_set() -> None:
    settings = parse_delivery(TEXT, "rules.yaml", {"OPS_HOOK": "http://x/", "OPS_PASSWORD": "p"})
    am, hook, chat, log, table = settings.channels
    assert (am.plan.mode, am.plan.resend, am.plan.hold) == ("newest", 30 * SECOND, 10 * MINUTE)
    assert am.url is not None
    assert am.url.read() == "http://alertmanager:9093/prefix"
    assert am.labels == (("site", "eu"),)
    assert am.login.password is not None
    assert (am.login.user, am.login.password.read()) == ("ops", "p")
    assert hook.plan.match == parse_matchers('team="ads",severity=~"warning|critical"')
    assert hook.plan.rate == Rate(10, 60 * MINUTE)
    assert hook.plan.updates
    assert hook.url is not None
    assert hook.url.read() == "http://x/"
    assert (chat.plan.rate, chat.plan.mutes, chat.plan.updates) == (Rate(20, MINUTE), False, False)
    assert (log.plan.rate, log.plan.mutes, log.plan.updates, log.timeout_s) == (None, False, True, 3.0)
    assert table.plan.rate is None
    (silence,) = settings.silences
    assert silence.matchers == parse_matchers("team=ads,cluster=eu-1")
    assert silence.ends_at - silence.starts_at == 3 * 60 * MINUTE
    assert silence.comment == "move"


def test_channels_are_made_of_them() -> None:
    settings = parse_delivery(TEXT, "rules.yaml", {})
    env = {"ETTWATCH_KAFKA": "127.0.0.1:1", "ETTWATCH_TOPIC_PREFIX": "prod"}
    made = make_channels(settings.channels, lambda: pytest.fail("it connects before it sends"), env)
    kinds = [AlertmanagerChannel, WebhookChannel, SlackChannel, TopicChannel, TableChannel]
    assert [type(channel) for channel in made] == kinds
    assert [channel.name for channel in made] == ["am", "hook", "chat", "log", "table"]
    with pytest.raises(ChannelError, match="'log': no Kafka broker is named"):
        make_channels(settings.channels, None, {})
    with pytest.raises(ChannelError, match="'table': no ClickHouse is at hand"):
        make_channels(settings.channels, None, env)


def test_a_file_without_them_is_fine() -> None:
    assert parse_delivery("rules: []", "rules.yaml", {}) == DeliverySettings()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("channels: [a]", 1, "channels must be a mapping"),
        ("channels:\n  a: 1", 2, "channel 'a' must be a mapping"),
        ("channels:\n  a: {url: http://x}", 2, "has no type; give one of alertmanager, webhook"),
        ("channels:\n  a: {type: }", 2, "type must be a text"),
        ("channels:\n  a:\n    type: slak\n    url_file: x", 3, "unknown type 'slak' (did you mean 'slack'?)"),
        ("channels:\n  a: {type: kafka}\n  a: {type: kafka}", 3, "stands twice, first in line 2"),
        ("channels:\n  a: {type: webhook}", 2, "no address; give url, url_file or url_env"),
        ("channels:\n  a: {type: slack}", 2, "no address; give url_file or url_env"),
        ("channels:\n  a:\n    type: slack\n    url: http://x", 4, "the address is a secret here"),
        ("channels:\n  a:\n    type: webhook\n    url: x.example", 4, "is no address"),
        ("channels:\n  a:\n    type: webhook\n    url: http://x:99999/", 4, "is no address"),
        ("channels:\n  a:\n    type: webhook\n    url: http://u:hush@x/", 4, "holds a login"),
        ("channels:\n  a: {type: webhook, url: http://x,\n    url_file: y}", 2, "given twice"),
        ("channels:\n  a: {type: webhook, url_env: X,\n    url_file: y}", 2, "give url_file or url_env, not both"),
        ("channels:\n  a: {type: webhook, url: http://x, resend: 1m}", 2, "unknown key 'resend'"),
        ("channels:\n  a: {type: alertmanager, url: http://x,\n    resend: soon}", 3, "is no duration"),
        ("channels:\n  a: {type: alertmanager, url: http://x,\n    resend: 0}", 3, "between 0 and a day"),
        ("channels:\n  a: {type: alertmanager, url: http://x,\n    hold: 90s}", 3, "at least twice resend"),
        ("channels:\n  a: {type: kafka,\n    rate: 0/m}", 3, "is no rate"),
        ("channels:\n  a: {type: kafka,\n    rate: 5/week}", 3, "is no rate"),
        ("channels:\n  a: {type: kafka,\n    match: team}", 3, "match: 'team' is no matcher"),
        ("channels:\n  a: {type: kafka,\n    silences: perhaps}", 3, "silences must be true or false"),
        ("channels:\n  a: {type: webhook, url: http://x,\n    password_file: x}", 2, "a password and no user"),
        ("channels:\n  a: {type: webhook, url: http://x, user: u,\n    token_file: x}", 2, "not both"),
        ("silences: {match: a=b}", 1, "silences must be a list"),
        ("silences:\n  - match: a=b", 2, "a silence needs match and until"),
        ("silences:\n  - until: 2026-12-01T00:00:00Z", 2, "a silence needs match and until"),
        ("silences:\n  - {match: a=b, until: 2026-12-01}", 2, "has no time zone"),
        ("silences:\n  - {match: a=b, until: 2026-12-01T00:00:00Z, from: 2026-12-02T00:00:00Z}", 2, "ends before"),
        ("silences:\n  - {match: a=b, untl: x}", 2, "unknown key 'untl' (did you mean 'until'?)"),
        ("channels: {a: [", 1, "not YAML"),
        ("- a", 1, "the file must be a mapping"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, words: str) -> None:
    ((at, reason),) = problems(text)
    assert at == line
    assert words in reason
    assert "hush" not in reason


def test_all_problems_are_told_at_once_with_the_file() -> None:
    text = "channels:\n  a: {type: kafka, x: 1}\n  b: {type: webhook}\nsilences: 1\n"
    assert [line for line, _ in problems(text)] == [2, 3, 4]
    with pytest.raises(DeliverySettingsError, match=r"^rules.yaml:2: unknown key 'x'"):
        parse_delivery(text, "rules.yaml", {})
