"""The outbox: episodes, and what each channel has to hear, over restarts."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from ettwatch_monitor.alerts.alert import Alert
from ettwatch_monitor.alerts.deliver import Delivery, Outbox, OutboxError, Plan, Silence, Taken, parse_matchers
from support.delivery import HOUR, MINUTE, T0, ScriptedChannel, delivering, firing, resolved


def test_an_alert_is_told_once_when_it_fires_and_once_when_it_ends(tmp_path: Path) -> None:
    chat, alert = ScriptedChannel(), firing()
    with delivering(tmp_path / "outbox", chat) as delivery:
        assert delivery.put(alert, T0) is Taken.FIRED
        assert delivery.deliver_all(T0) is None
        for minute in range(1, 10):
            again = replace(alert, updated_at=T0 + minute * MINUTE)
            assert delivery.put(again, T0 + minute * MINUTE) is Taken.SAME
            delivery.deliver_all(T0 + minute * MINUTE)
        assert delivery.put(resolved(alert, T0 + HOUR), T0 + HOUR) is Taken.RESOLVED
        delivery.deliver_all(T0 + HOUR)
        assert delivery.put(resolved(alert, T0 + HOUR), T0 + HOUR) is Taken.UNKNOWN
        delivery.deliver_all(T0 + 2 * HOUR)
    assert chat.told == [(alert.key, "firing"), (alert.key, "resolved")]
    assert chat.got[1].alert.ends_at == T0 + HOUR


def test_after_a_restart_nothing_fires_again_even_with_another_begin(tmp_path: Path) -> None:
    alert = firing()
    before, after = ScriptedChannel(), ScriptedChannel()
    with delivering(tmp_path / "outbox", before) as delivery:
        delivery.put(alert, T0)
        delivery.deliver_all(T0)
    # The detector forgot, and sees the begin elsewhere by now.
    with delivering(tmp_path / "outbox", after, now=T0 + HOUR) as delivery:
        late = replace(alert, starts_at=T0 + MINUTE, updated_at=T0 + HOUR)
        assert delivery.put(late, T0 + HOUR) is Taken.SAME
        delivery.deliver_all(T0 + HOUR)
        delivery.put(resolved(late, T0 + 2 * HOUR), T0 + 2 * HOUR)
        delivery.deliver_all(T0 + 2 * HOUR)
    assert before.told == [(alert.key, "firing")]
    assert after.told == [(alert.key, "resolved")]
    assert after.got[0].episode == before.got[0].episode
    assert after.got[0].alert.starts_at == T0


def test_what_fires_anew_is_another_episode_even_since_the_same_time(tmp_path: Path) -> None:
    chat, alert = ScriptedChannel(), firing()
    with delivering(tmp_path / "outbox", chat) as delivery:
        for hour in range(3):
            at = T0 + hour * HOUR
            assert delivery.put(replace(alert, updated_at=at), at) is Taken.FIRED
            delivery.put(resolved(alert, at + MINUTE), at + MINUTE)
            delivery.deliver_all(at + MINUTE)
    assert [status for _, status in chat.told] == ["firing", "resolved"] * 3
    assert len({message.episode for message in chat.got}) == 3
    assert len({message.id for message in chat.got}) == 6


def test_an_older_state_changes_nothing(tmp_path: Path) -> None:
    chat, alert = ScriptedChannel(), firing(at=T0 + HOUR)
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(alert, T0 + HOUR)
        assert delivery.put(replace(resolved(alert, T0 + HOUR), updated_at=T0), T0) is Taken.STALE
        delivery.deliver_all(T0 + HOUR)
    assert chat.told == [(alert.key, "firing")]


def test_what_ends_without_having_fired_is_told_to_nobody(tmp_path: Path) -> None:
    chat = ScriptedChannel()
    with delivering(tmp_path / "outbox", chat) as delivery:
        assert delivery.put(resolved(firing(), T0 + 1), T0) is Taken.UNKNOWN
        delivery.deliver_all(T0)
    assert chat.got == []


@pytest.mark.parametrize("changed", [{"severity": "critical"}, {"labels": {"team": "ads", "owner": "storage"}}])
def test_another_severity_or_other_labels_are_told(tmp_path: Path, changed: dict[str, object]) -> None:
    chat, alert = ScriptedChannel(), firing()
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(alert, T0)
        delivery.deliver_all(T0)
        assert delivery.put(replace(alert, updated_at=T0 + 1, **changed), T0 + 1) is Taken.CHANGED  # type: ignore[arg-type]
        delivery.deliver_all(T0 + 1)
    assert [message.seq for message in chat.got] == [0, 1]


def test_other_words_are_told_only_to_those_who_ask_for_them(tmp_path: Path) -> None:
    chat, log, alert = ScriptedChannel("chat"), ScriptedChannel("log", Plan(updates=True)), firing()
    with delivering(tmp_path / "outbox", chat, log) as delivery:
        delivery.put(alert, T0)
        delivery.deliver_all(T0)
        assert delivery.put(replace(alert, body="now worse", updated_at=T0 + 1), T0 + 1) is Taken.UPDATED
        delivery.deliver_all(T0 + 1)
    assert len(chat.got) == 1
    assert [message.alert.body for message in log.got] == [alert.body, "now worse"]


def test_a_message_that_waits_takes_in_what_changed(tmp_path: Path) -> None:
    chat, alert = ScriptedChannel(), firing()
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(alert, T0)
        delivery.put(replace(alert, body="worse", updated_at=T0 + 1), T0 + 1)
        delivery.put(replace(alert, body="worst", severity="critical", updated_at=T0 + 2), T0 + 2)
        delivery.deliver_all(T0 + 2)
    assert [(message.alert.body, message.alert.severity) for message in chat.got] == [("worst", "critical")]


def test_a_channel_hears_only_what_it_asks_for_and_then_all_of_it(tmp_path: Path) -> None:
    ads, critical = (
        ScriptedChannel(name, Plan(match=parse_matchers(match)))
        for name, match in (("ads", 'team="ads"'), ("critical", "severity=critical"))
    )
    alert = firing()
    with delivering(tmp_path / "outbox", ads, critical) as delivery:
        delivery.put(alert, T0)
        delivery.put(firing("tts|team=video", team="video", severity="critical"), T0)
        delivery.deliver_all(T0)
        delivery.put(replace(alert, labels={"team": "moved"}, updated_at=T0 + 1), T0 + 1)
        delivery.put(resolved(replace(alert, labels={"team": "moved"}), T0 + 2), T0 + 2)
        delivery.deliver_all(T0 + 2)
    assert ads.told == [(alert.key, "firing"), (alert.key, "firing"), (alert.key, "resolved")]
    assert critical.told == [("tts|team=video", "firing")]


def test_a_new_channel_hears_of_what_fires_and_an_old_one_nothing_twice(tmp_path: Path) -> None:
    old, new = ScriptedChannel("old"), ScriptedChannel("new")
    with delivering(tmp_path / "outbox", old) as delivery:
        delivery.put(firing("a"), T0)
        delivery.put(firing("b"), T0)
        delivery.put(resolved(firing("b"), T0 + 1), T0 + 1)
        delivery.deliver_all(T0 + 1)
        assert len(old.got) == 3
        delivery.reconfigure([old, new], (), T0 + 2)
        delivery.deliver_all(T0 + 2)
    assert len(old.got) == 3
    assert new.told == [("a", "firing")]


def test_a_channel_that_was_taken_out_and_put_back_is_a_new_one(tmp_path: Path) -> None:
    chat = ScriptedChannel()
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(firing("a"), T0)
        delivery.reconfigure([], (), T0)
        assert delivery.deliver_all(T0) is None
        delivery.reconfigure([chat], (), T0)
        delivery.deliver_all(T0)
    assert chat.told == [("a", "firing")]


def test_a_channel_of_another_mode_under_the_old_name_is_a_new_one(tmp_path: Path) -> None:
    chat, am = ScriptedChannel("x"), ScriptedChannel("x", Plan(mode="newest"))
    for channel in (chat, am, chat):
        with delivering(tmp_path / "outbox", channel) as delivery:
            delivery.put(firing("a"), T0)
            delivery.deliver_all(T0)
    assert len(am.got) == 1
    assert len(chat.got) == 2


def test_two_processes_do_not_deliver_from_one_outbox(tmp_path: Path) -> None:
    with delivering(tmp_path / "outbox", ScriptedChannel()):
        with pytest.raises(OutboxError, match="another process delivers"):
            Delivery(Outbox(tmp_path / "outbox"), [], now=T0)
        with Outbox(tmp_path / "outbox") as other:  # to look and to silence is allowed
            assert other.firing() == []
    with delivering(tmp_path / "outbox", ScriptedChannel()):
        pass


def test_two_channels_of_one_name_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="one name"),
        delivering(tmp_path / "outbox", ScriptedChannel(), ScriptedChannel()),
    ):
        pass


def test_silences_are_kept_and_removed(tmp_path: Path) -> None:
    silence = Silence(parse_matchers('team="a\\"ds", model=~"x.*"'), T0 + HOUR, T0, "moving house")
    with Outbox(tmp_path / "outbox") as outbox:
        number = outbox.silence(silence)
    with Outbox(tmp_path / "outbox") as outbox:
        assert outbox.silences(T0) == [replace(silence, number=number)]
        assert outbox.silences(T0 + HOUR) == []
        assert outbox.unsilence(number)
        assert not outbox.unsilence(number)


def test_what_was_told_long_ago_is_forgotten_and_what_fires_is_not(tmp_path: Path) -> None:
    chat = ScriptedChannel()
    long, short = firing("long"), firing("short")
    later = T0 + 30 * 24 * HOUR
    with delivering(tmp_path / "outbox", chat) as delivery:
        for alert in (long, short, resolved(short, T0 + 1)):
            delivery.put(alert, T0 + 1)
        delivery.deliver_all(T0 + 1)
        assert len(chat.got) == 3
        delivery.deliver_all(later)
    with Outbox(tmp_path / "outbox") as outbox:
        assert outbox.known("short") is None
        assert outbox.known("long") is not None
        assert outbox.queue.counts("chat") == {"sent": 1}


def test_facts_that_are_no_numbers_in_json_are_kept_as_text(tmp_path: Path) -> None:
    chat = ScriptedChannel()
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(replace(firing(), facts={"p": float("nan"), "ratio": float("inf"), "x": 0.1}), T0)
        delivery.deliver_all(T0)
    assert chat.got[0].alert.facts == {"p": "nan", "ratio": "inf", "x": 0.1}


def test_an_outbox_is_for_its_owner_only(tmp_path: Path) -> None:
    with delivering(tmp_path / "outbox", ScriptedChannel()):
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_file_that_is_no_outbox_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "outbox").write_bytes(b"not a database " * 100)
    with pytest.raises(OutboxError, match="cannot use the outbox .*move it away"):
        Outbox(tmp_path / "outbox")
    assert (tmp_path / "outbox").read_bytes().startswith(b"not a database")
    with pytest.raises(OutboxError, match="cannot open the outbox"):
        Outbox(tmp_path / "nowhere" / "outbox")


def test_an_outbox_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with Outbox(tmp_path / "outbox") as outbox:
        outbox.connection.execute("PRAGMA user_version = 9")
    with pytest.raises(OutboxError, match="format 9"):
        Outbox(tmp_path / "outbox")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"key": ""}, "needs a key"),
        ({"status": "on"}, "status is 'on'"),
        ({"severity": "page"}, "severity is 'page'"),
        ({"ends_at": T0}, "ends_at belongs to a resolved alert"),
        ({"status": "resolved"}, "ends_at belongs to a resolved alert"),
        ({"status": "resolved", "ends_at": T0 - 1}, "ends before it starts"),
        ({"updated_at": 1 << 60}, "is no time"),
        ({"starts_at": -1}, "is no time"),
        ({"labels": {"team": "\ud800"}}, "is no Unicode"),
        ({"sql": (("a", "\ud800"),)}, "is no Unicode"),
    ],
)
def test_an_alert_that_cannot_be_is_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(firing(), **wrong)  # type: ignore[arg-type]


def test_an_alert_is_firing_or_not() -> None:
    assert firing().firing
    assert not resolved(firing(), T0).firing
    assert isinstance(firing(), Alert)
