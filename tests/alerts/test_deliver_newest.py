"""Delivery of newest states: again and again while an alert fires, and that it ended."""

from dataclasses import replace
from pathlib import Path

from ettwatch_monitor.alerts.deliver import Plan, Refused, Silence, Unavailable, parse_matchers
from support.delivery import HOUR, MINUTE, SECOND, T0, Killed, ScriptedChannel, delivering, firing, resolved

NEWEST = Plan(mode="newest", resend=MINUTE, hold=15 * MINUTE, batch=100)


def channel() -> ScriptedChannel:
    return ScriptedChannel("am", NEWEST)


def test_it_is_told_again_before_the_receiver_would_forget_it_and_for_a_while_that_it_ended(tmp_path: Path) -> None:
    am, now, times = channel(), T0, []
    with delivering(tmp_path / "outbox", am) as delivery:
        delivery.put(firing(), now)
        while now <= T0 + HOUR:
            due = delivery.deliver_all(now)
            assert due == now + MINUTE
            times.append(now)
            now = due
        assert len(am.got) == len(times)
        am.got.clear()
        delivery.put(resolved(firing(), now), now)
        ended, due = now, now
        while due is not None:
            now = due
            due = delivery.deliver_all(now)
        assert 14 * MINUTE <= now - ended <= 16 * MINUTE
        assert {message.alert.ends_at for message in am.got} == {ended}


def test_only_the_newest_state_is_told_after_an_outage_and_nothing_is_forgotten(tmp_path: Path) -> None:
    am = channel()
    with delivering(tmp_path / "outbox", am) as delivery:
        delivery.put(firing("known"), T0)
        delivery.deliver_all(T0)
        am.got.clear()
        for minute in range(60):
            now = T0 + minute * MINUTE
            am.faults = [Unavailable("down")]
            if minute == 10:
                delivery.put(resolved(firing("known"), now), now)
                delivery.put(firing("new", now), now)
            if minute == 20:
                delivery.put(replace(firing("new", now), body="worse"), now)
            delivery.deliver_all(now)
        assert delivery.health()[0].waiting == 1
        am.faults = []
        delivery.deliver_all(T0 + 2 * HOUR)
        assert delivery.health()[0].waiting == 0
    assert sorted(am.told) == [("known", "resolved"), ("new", "firing")]
    assert next(m for m in am.got if m.alert.key == "new").alert.body == "worse"


def test_all_that_is_due_goes_in_one_call_as_far_as_it_fits(tmp_path: Path) -> None:
    am = channel()
    with delivering(tmp_path / "outbox", am) as delivery:
        for number in range(250):
            delivery.put(firing(f"{number}"), T0)
        delivery.deliver_all(T0)
        delivery.deliver_all(T0 + 30 * SECOND)
    assert am.calls == [100, 100, 50]


def test_a_crash_or_a_restart_only_repeats(tmp_path: Path) -> None:
    am = channel()
    am.faults, am.after = [Killed()], True
    try:
        with delivering(tmp_path / "outbox", am) as delivery:
            delivery.put(firing(), T0)
            delivery.deliver_all(T0)
    except Killed:
        pass
    with delivering(tmp_path / "outbox", am) as delivery:
        delivery.deliver_all(T0 + 1)
        delivery.deliver_all(T0 + 2)
    assert [message.id for message in am.got] == [am.got[0].id] * 2


def test_the_labels_it_was_known_by_come_along_when_they_change(tmp_path: Path) -> None:
    am, alert = channel(), firing()
    with delivering(tmp_path / "outbox", am) as delivery:
        delivery.put(alert, T0)
        delivery.deliver_all(T0)
        delivery.put(replace(alert, severity="critical", updated_at=T0 + 1), T0 + 1)
        delivery.deliver_all(T0 + 1)
        delivery.deliver_all(T0 + 1 + MINUTE)
    assert [message.replaced and message.replaced["severity"] for message in am.got] == [None, "warning", None]


def test_a_state_that_is_refused_is_tried_again_later_and_stops_no_other(tmp_path: Path) -> None:
    am = channel()
    am.unwanted = lambda message: Refused("bad label") if message.alert.key == "bad" else None
    with delivering(tmp_path / "outbox", am) as delivery:
        for key in ("a", "bad", "c"):
            delivery.put(firing(key), T0)
        delivery.deliver_all(T0)
        assert [key for key, _ in am.told] == ["a", "c"]
        assert delivery.health()[0].refused == 1
        am.unwanted = None
        delivery.deliver_all(T0 + MINUTE)
        assert delivery.health()[0].refused == 0
    assert ("bad", "firing") in am.told


def test_a_silence_keeps_back_what_was_not_told_and_lets_the_rest_go_on(tmp_path: Path) -> None:
    am = channel()
    quiet = Silence(parse_matchers("team=ads"), T0 + HOUR)
    with delivering(tmp_path / "outbox", am) as delivery:
        delivery.put(firing("told"), T0)
        delivery.deliver_all(T0)
        delivery.reconfigure([am], [quiet], T0)
        for key in ("stays", "goes"):
            delivery.put(firing(key), T0 + 1)
        assert delivery.deliver_all(T0 + 1) == T0 + MINUTE
        delivery.put(resolved(firing("goes"), T0 + 2), T0 + 2)
        am.got.clear()
        for minute in range(1, 60):
            delivery.deliver_all(T0 + minute * MINUTE)
        assert {key for key, _ in am.told} == {"told"}
        delivery.deliver_all(T0 + HOUR)
    assert {key for key, _ in am.told} == {"told", "stays"}


def test_an_alert_that_fires_anew_is_told_as_such(tmp_path: Path) -> None:
    am = channel()
    with delivering(tmp_path / "outbox", am) as delivery:
        delivery.put(firing(at=T0), T0)
        delivery.deliver_all(T0)
        delivery.put(resolved(firing(), T0 + MINUTE), T0 + MINUTE)
        delivery.deliver_all(T0 + MINUTE)
        delivery.put(firing(at=T0 + 2 * MINUTE), T0 + 2 * MINUTE)
        delivery.deliver_all(T0 + 2 * MINUTE)
        delivery.deliver_all(T0 + 30 * MINUTE)
    assert [status for _, status in am.told] == ["firing", "resolved", "firing", "firing"]
    assert am.got[-1].alert.starts_at == T0 + 2 * MINUTE


def test_a_clock_that_was_set_back_keeps_nothing_from_being_told(tmp_path: Path) -> None:
    am = channel()
    with delivering(tmp_path / "outbox", am) as delivery:
        delivery.put(firing(), T0)
        delivery.deliver_all(T0)
        delivery.deliver_all(T0 - 24 * HOUR)
    assert len(am.got) == 2
