"""Against a real Alertmanager: firing, grouped, resolved, not fired again; and what an outage changes: nothing."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from ettwatch_monitor.alerts.deliver import AlertmanagerChannel, Plan
from ettwatch_monitor.alerts.deliver.post import Login, Poster
from ettwatch_monitor.alerts.deliver.secret import Secret
from support.alertmanager import Alertmanager, alertmanager, until
from support.delivery import HOUR, MINUTE, SECOND, Receiver, Request, delivering, firing, receiver, resolved


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture
def manager(tmp_path: Path, hook: Receiver) -> Iterator[Alertmanager]:
    with alertmanager(tmp_path / "am", hook.url) as running:
        yield running


def channel(url: str, **plan: int) -> AlertmanagerChannel:
    poster = Poster(Secret("text", url), Login())
    return AlertmanagerChannel("am", Plan(mode="newest", batch=100, **plan), poster, {"site": "eu"})  # type: ignore[arg-type]


def told(got: Sequence[Request]) -> list[tuple[str, str]]:
    """Key and status of each alert of each notification, in order."""
    return [(a["labels"]["alert_key"], a["status"]) for request in got for a in request.json["alerts"]]


def clock() -> int:
    return time.time_ns() // 1_000


def test_firing_grouped_resolved(tmp_path: Path, manager: Alertmanager, hook: Receiver) -> None:
    now = clock()
    with delivering(tmp_path / "outbox", channel(manager.url), now=now) as delivery:
        for key, team in (("tts", "ads"), ("ttr", "ads"), ("tts|video", "video")):
            delivery.put(firing(key, now - MINUTE, team=team), now)
        delivery.deliver_all(now)
        until(lambda: len(set(told(hook.got))) == 3)
        # An old alert is told at once, maybe before its neighbour of the same message is in: the last word counts.
        groups = {request.json["groupLabels"]["team"]: len(request.json["alerts"]) for request in hook.got}
        assert groups == {"ads": 2, "video": 1}
        told_of = {alert["labels"]["alert_key"]: alert for request in hook.got for alert in request.json["alerts"]}
        labels, annotations = told_of["tts"]["labels"], told_of["tts"]["annotations"]
        assert {"alertname": "EttwatchRegression", "severity": "warning", "site": "eu"}.items() <= labels.items()
        assert annotations["summary"] == "TTS of ads rose from 5m to 6m"
        assert annotations["sql_1"].startswith("starts of the team: SELECT")

        delivery.put(resolved(firing("tts", now - MINUTE), now), now)
        delivery.deliver_all(now + SECOND)
        until(lambda: ("tts", "resolved") in told(hook.got))
        assert ("ttr", "resolved") not in told(hook.got)
    assert {a["labels"]["alert_key"] for a in manager.alerts()} == {"ttr", "tts|video"}


def test_a_restart_of_either_side_fires_nothing_again(tmp_path: Path, manager: Alertmanager, hook: Receiver) -> None:
    now = clock()
    am = channel(manager.url)
    with delivering(tmp_path / "outbox", am, now=now) as delivery:
        delivery.put(firing("a", now), now)
        delivery.deliver_all(now)
        until(lambda: told(hook.got) == [("a", "firing")])
    with delivering(tmp_path / "outbox", am, now=now) as delivery:
        delivery.put(firing("a", now + SECOND), now)
        delivery.deliver_all(now + 2 * MINUTE)
    manager.kept()
    manager.stop()
    manager.start()
    assert manager.alerts() == []
    with delivering(tmp_path / "outbox", am, now=now) as delivery:
        delivery.deliver_all(now + 4 * MINUTE)
        until(lambda: len(manager.alerts()) == 1)
        # It is a group anew, with a wait and an interval of its own: both pass without a word.
        time.sleep(1.5)
        assert told(hook.got) == [("a", "firing")]
        # An end that lies in the past by Alertmanager's clock: of others it takes the latest it was ever told.
        delivery.put(resolved(firing("a", now), now + SECOND), now + 5 * MINUTE)
        delivery.deliver_all(now + 5 * MINUTE)
        until(lambda: len(told(hook.got)) > 1)
        time.sleep(1)
    assert told(hook.got) == [("a", "firing"), ("a", "resolved")]


def test_down_for_an_hour_loses_and_doubles_nothing(tmp_path: Path, manager: Alertmanager, hook: Receiver) -> None:
    begin = clock() - HOUR
    with delivering(tmp_path / "outbox", channel(manager.url), now=begin) as delivery:
        for key in ("stays", "ends"):
            delivery.put(firing(key, begin), begin)
        # The hour is told and Alertmanager lives now: it must not find these over before the outage.
        delivery.deliver_all(begin + HOUR)
        until(lambda: len(set(told(hook.got))) == 2)
        manager.kept()
        before = len(hook.got)  # two, if the first was told before the second of the same message was in
        manager.stop()
        for minute in range(1, 60):
            now = begin + minute * MINUTE
            if minute == 20:
                delivery.put(resolved(firing("ends", begin), now), now)
            if minute == 30:
                delivery.put(firing("new", now), now)
            if minute == 40:
                delivery.put(replace(firing("new", now), body="worse"), now)
            delivery.deliver_all(now)
        health = delivery.health()[0]
        assert health.error is not None
        assert "nothing listens there" in health.error
        manager.start()
        delivery.deliver_all(begin + HOUR + 10 * MINUTE)
        until(lambda: {("ends", "resolved"), ("new", "firing")} <= set(told(hook.got)))
        delivery.deliver_all(begin + HOUR + 12 * MINUTE)
        time.sleep(1.5)
    first, later = told(hook.got[:before]), told(hook.got[before:])
    assert set(first) == {("ends", "firing"), ("stays", "firing")}
    assert set(later) - set(first) == {("ends", "resolved"), ("new", "firing")}
    # A notification of a group names all that fires in it, so "stays" stands in more than one; but each says something
    # that the one before did not.
    said = [{(a["labels"]["alert_key"], a["status"]) for a in request.json["alerts"]} for request in hook.got]
    assert all(later - before for before, later in pairwise(said)), said


def test_an_alert_ends_by_itself_where_nobody_is_left_to_tell(
    tmp_path: Path, manager: Alertmanager, hook: Receiver
) -> None:
    now = clock()
    with delivering(tmp_path / "outbox", channel(manager.url, hold=10 * SECOND, resend=SECOND), now=now) as delivery:
        delivery.put(firing("a", now), now)

        def heard_of() -> bool:
            delivery.deliver_all(clock())
            return ("a", "firing") in told(hook.got)

        # It says so every second until Alertmanager has told it: where that takes long, the first word is over by then.
        until(heard_of)
    until(lambda: told(hook.got) == [("a", "firing"), ("a", "resolved")])


def test_another_severity_ends_the_alert_under_the_old_labels(
    tmp_path: Path, manager: Alertmanager, hook: Receiver
) -> None:
    now = clock()
    with delivering(tmp_path / "outbox", channel(manager.url), now=now) as delivery:
        delivery.put(firing("a", now), now)
        delivery.deliver_all(now)
        until(lambda: len(manager.alerts()) == 1)
        delivery.put(replace(firing("a", now), severity="critical"), now)
        delivery.deliver_all(clock())
        until(lambda: [a["labels"]["severity"] for a in manager.alerts()] == ["critical"])


def test_labels_of_any_kind_are_taken(tmp_path: Path, manager: Alertmanager, hook: Receiver) -> None:
    now = clock()
    odd = replace(
        firing('tts|"ü"\n', now), labels={"my label": 'quo"te', "9": "nine", "": "none", "empty": "", "ü": "x"}
    )
    with delivering(tmp_path / "outbox", channel(manager.url), now=now) as delivery:
        delivery.put(odd, now)
        delivery.deliver_all(now)
        assert delivery.health()[0].error is None
        assert delivery.health()[0].refused == 0
        until(lambda: len(told(hook.got)) == 1)
    labels = hook.got[0].json["alerts"][0]["labels"]
    assert labels["my_label"] == 'quo"te'
    assert labels["_9"] == "nine"
    assert labels["alert_key"] == 'tts|"ü"\n'
