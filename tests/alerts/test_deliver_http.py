"""Webhooks, plain and of Slack's kind, against a receiver over HTTP: what arrives, what an answer means, no secrets."""

import hashlib
import hmac
import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ettwatch_monitor.alerts.deliver import Message, Plan, Refused, SlackChannel, Unavailable, WebhookChannel
from ettwatch_monitor.alerts.deliver.post import Login, Poster
from ettwatch_monitor.alerts.deliver.secret import Secret
from support.alertmanager import until
from support.delivery import HOUR, SECOND, T0, Receiver, delivering, firing, receiver, resolved

SECRET = "hush-4711"


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def text(value: str) -> Secret:
    return Secret("text", value)


def webhook(
    url: str, login: Login | None = None, secret: Secret | None = None, timeout_s: float = 60
) -> WebhookChannel:
    return WebhookChannel("hook", Plan(), Poster(text(url), login or Login(), timeout_s=timeout_s), secret)


def message(**changes: Any) -> Message:
    return Message(replace(firing(), **changes), T0, 0)


def test_a_webhook_gets_one_object_for_each_state(tmp_path: Path, hook: Receiver) -> None:
    with delivering(tmp_path / "outbox", webhook(f"{hook.url}/in?x=1")) as delivery:
        delivery.put(firing(), T0)
        delivery.put(resolved(firing(), T0 + HOUR), T0 + HOUR)
        delivery.deliver_all(T0 + HOUR)
    first, second = hook.got
    assert first.path == "/in?x=1"
    assert first.headers["Content-Type"] == "application/json"
    assert first.headers["X-Ettwatch-Id"] == first.json["id"] != second.json["id"]
    assert "X-Ettwatch-Signature" not in first.headers
    assert first.json == {
        "v": 1,
        "id": first.json["id"],
        "key": "tts|team=ads",
        "episode": T0,
        "seq": 0,
        "status": "firing",
        "severity": "warning",
        "starts_at": "2026-09-21T14:13:20.000000Z",
        "ends_at": None,
        "updated_at": "2026-09-21T14:13:20.000000Z",
        "silenced": False,
        "labels": {"alertname": "EttwatchRegression", "metric": "tts", "team": "ads", "severity": "warning"},
        "title": firing().title,
        "body": firing().body,
        "facts": {"before_s": 300.0, "now_s": 360.0, "stage": "trainer_init.checkpoint_load"},
        "sql": [{"title": title, "query": query} for title, query in firing().sql],
    }
    assert (second.json["status"], second.json["ends_at"]) == ("resolved", "2026-09-21T15:13:20.000000Z")
    assert second.json["episode"] == first.json["episode"]


def test_a_signature_proves_who_sent_it_and_when(hook: Receiver) -> None:
    webhook(hook.url, secret=text(SECRET)).send([message()], T0)
    (got,) = hook.got
    parts = dict(part.split("=") for part in got.headers["X-Ettwatch-Signature"].split(","))
    assert int(parts["t"]) == T0 // SECOND
    wanted = hmac.new(SECRET.encode(), f"{parts['t']}.".encode() + got.body, hashlib.sha256).hexdigest()
    assert parts["v1"] == wanted


@pytest.mark.parametrize(
    ("login", "header"),
    [
        (Login(token=Secret("text", SECRET)), f"Bearer {SECRET}"),
        (Login(user="ops", password=Secret("text", SECRET)), "Basic b3BzOmh1c2gtNDcxMQ=="),
        (Login(), None),
    ],
)
def test_logins(hook: Receiver, login: Login, header: str | None) -> None:
    webhook(hook.url, login).send([message()], T0)
    assert hook.got[0].headers.get("Authorization") == header


@pytest.mark.parametrize(
    ("status", "headers", "kind", "after"),
    [
        (500, {}, Unavailable, 0),
        (503, {"Retry-After": "17"}, Unavailable, 17 * SECOND),
        (429, {"Retry-After": "999999999999"}, Unavailable, HOUR),
        (429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, Unavailable, 0),
        (401, {}, Unavailable, 0),
        (404, {}, Unavailable, 0),
        (302, {"Location": "http://elsewhere/"}, Unavailable, 0),
        (400, {}, Refused, None),
        (413, {}, Refused, None),
        (422, {}, Refused, None),
    ],
)
def test_what_an_answer_means(
    hook: Receiver, status: int, headers: dict[str, str], kind: type[Exception], after: int | None
) -> None:
    hook.answers = [(status, headers, f"no: {SECRET}\n<b>".encode())]
    with pytest.raises(kind) as caught:
        webhook(hook.url, Login(token=text(SECRET))).send([message()], T0)
    assert f"answers {status}: no: ..." in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    if isinstance(caught.value, Unavailable):
        assert caught.value.after == after
    assert len(hook.got) == 1  # neither tried again nor sent to where it points


def test_a_receiver_that_does_not_answer_or_hangs_up(hook: Receiver) -> None:
    hook.answers = [(0, {}, b"")]
    with pytest.raises(Unavailable, match="takes too long"):
        webhook(hook.url, timeout_s=0.3).send([message()], T0)
    until(lambda: not hook.answers)  # it may have given up before the receiver had even looked
    hook.delay.set()
    hook.answers = [(0, {}, b"")]
    with pytest.raises(Unavailable, match="connection was lost"):
        webhook(hook.url).send([message()], T0)


def test_a_receiver_that_is_not_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for url, words in [
        (f"http://127.0.0.1:{port}/{SECRET}", "nothing listens there"),
        (f"http://nowhere.invalid/{SECRET}", "no such host"),
        (f"https://127.0.0.1:{port}/{SECRET}", "nothing listens there"),
        (f"ftp://x/{SECRET}", "malformed"),
        (f"http://[x/{SECRET}", "an address that is none"),
        (SECRET, "an address that is none: the address is malformed"),
    ]:
        with pytest.raises(Unavailable, match=words) as caught:
            webhook(url).send([message()], T0)
        assert SECRET not in str(caught.value)


def test_plain_http_where_encryption_is_wanted(hook: Receiver) -> None:
    with pytest.raises(Unavailable, match="the encrypted connection was not made"):
        webhook(hook.url.replace("http:", "https:")).send([message()], T0)


def test_secrets_are_read_anew_each_time_and_never_shown(tmp_path: Path, hook: Receiver) -> None:
    file = tmp_path / "token"
    channel = webhook(hook.url, Login(token=Secret("file", str(file))))
    for content, words in [
        (None, "cannot read .*token: No such file"),
        (b"", "is empty"),
        (b"\xff", "is no text"),
        (b"a\nb", "one line"),
    ]:
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(Unavailable, match=words):
            channel.send([message()], T0)
    for value in ("first", "second"):
        file.write_text(f"{value}\n")
        channel.send([message()], T0)
    assert [got.headers["Authorization"] for got in hook.got] == ["Bearer first", "Bearer second"]
    with pytest.raises(Unavailable, match="OPS_TOKEN is not set"):
        Secret("variable", "OPS_TOKEN", {}).read()
    assert Secret("variable", "OPS_TOKEN", {"OPS_TOKEN": " x \n"}).read() == "x"
    assert SECRET not in repr((text(SECRET), Login(token=text(SECRET))))


def test_nothing_secret_is_logged(hook: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    SlackChannel("chat", Plan(), Poster(text(f"{hook.url}/{SECRET}"), Login())).send([message()], T0)
    hook.answers = [(500, {}, b"")]
    with pytest.raises(Unavailable):
        webhook(f"{hook.url}/{SECRET}", Login(token=text(SECRET))).send([message()], T0)
    assert SECRET not in caplog.text


def chat(hook: Receiver, what: Message) -> Any:
    SlackChannel("chat", Plan(), Poster(text(hook.url), Login())).send([what], T0)
    return hook.got[-1].json


def test_a_chat_is_told_what_moved(hook: Receiver) -> None:
    told = chat(hook, message(severity="critical"))
    assert told["text"] == "*FIRING critical* TTS of ads rose from 5m to 6m"
    (part,) = told["attachments"]
    assert part["text"].startswith(firing().body)
    assert "tts_s &lt; 600```" in part["text"]
    assert part["footer"] == "tts|team=ads, since 2026-09-21T14:13Z"
    ended = chat(hook, Message(resolved(firing(), T0 + HOUR), T0, 1))
    assert ended["text"].startswith("*RESOLVED*")
    assert ended["attachments"][0]["footer"].endswith("until 2026-09-21T15:13Z")
    assert ended["attachments"][0]["color"] != part["color"]


def test_a_chat_obeys_no_command_in_a_text(hook: Receiver) -> None:
    told = chat(hook, message(title="<!channel> & co", body="<@U1>", sql=(("a", "SELECT ```<!here>"),)))
    assert "<" not in str(told)
    assert told["text"].endswith("&lt;!channel&gt; &amp; co")
    assert told["attachments"][0]["text"].count("```") == 2


def test_a_chat_gets_no_more_than_it_takes(hook: Receiver) -> None:
    told = chat(hook, message(body="x" * 100_000, sql=(("a", "y" * 100_000),)))
    assert len(told["attachments"][0]["text"]) < 7_000
    assert told["attachments"][0]["text"].endswith("...")
