"""Delivery message by message: order, retries, rates, silences, and crashes at the worst moment."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_monitor.alerts.deliver import Outbox, OutboxError, Plan, Refused, Silence, Unavailable, parse_matchers
from ettwatch_monitor.alerts.deliver.pace import Bucket, Rate, pause
from support.delivery import HOUR, MINUTE, SECOND, T0, Killed, ScriptedChannel, delivering, firing, resolved


def silence(match: str, until: int, since: int = 0) -> Silence:
    return Silence(parse_matchers(match), until, since)


def test_a_receiver_that_is_down_for_an_hour_loses_and_doubles_nothing(tmp_path: Path) -> None:
    chat, other = ScriptedChannel("chat"), ScriptedChannel("other")
    calls = 0
    with delivering(tmp_path / "outbox", chat, other) as delivery:
        delivery.put(firing("before"), T0)
        delivery.deliver_all(T0)
        chat.calls.clear()
        for second in range(0, 3_600, 5):
            now = T0 + second * SECOND
            chat.faults = [Unavailable("nothing listens there")]
            if second == 600:
                delivery.put(firing("during", now), now)
                delivery.put(firing("short", now), now)
            if second == 1_200:
                delivery.put(resolved(firing("short", T0), now), now)
                delivery.put(resolved(firing("before"), now), now)
            delivery.deliver_all(now)
        calls = len(chat.calls)
        assert delivery.health()[0].failing_since == T0 + 600 * SECOND
        assert delivery.health()[0].waiting == 4
        chat.faults = []
        due = delivery.deliver_all(T0 + HOUR)
        assert due is not None
        assert due - (T0 + HOUR) <= 5 * MINUTE
        assert delivery.deliver_all(due) is None
        assert delivery.health()[0][1:5] == (0, None, None, None)
    wanted = [("before", "firing"), ("during", "firing"), ("short", "firing"), ("short", "resolved")]
    assert chat.told == [*wanted, ("before", "resolved")]
    assert other.told == chat.told
    assert calls < 25  # it was not hammered


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_pause_grows_up_to_five_minutes(failures: int, chance: float) -> None:
    wait = pause(failures, chance)
    longest = min(300 * SECOND, SECOND * 2 ** min(failures - 1, 30))
    assert longest / 2 - 1 <= wait <= longest


def test_a_receiver_that_names_a_time_is_left_alone_until_then(tmp_path: Path) -> None:
    chat = ScriptedChannel(faults=[Unavailable("too many", 42 * SECOND)])
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(firing(), T0)
        assert delivery.deliver_all(T0) == T0 + 42 * SECOND
        assert delivery.deliver_all(T0 + 41 * SECOND) == T0 + 42 * SECOND
        assert chat.calls == [1]
        delivery.deliver_all(T0 + 42 * SECOND)
    assert len(chat.got) == 1


def test_a_pause_is_kept_over_a_restart(tmp_path: Path) -> None:
    chat = ScriptedChannel(faults=[Unavailable("away", HOUR)])
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(firing(), T0)
        delivery.deliver_all(T0)
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.deliver_all(T0 + MINUTE)
        assert chat.got == []
        # A clock that was set back by years does not stop it.
        delivery.deliver_all(T0 - 365 * 24 * HOUR)
    assert len(chat.got) == 1


def test_what_is_refused_stands_in_nobodys_way_and_is_kept(tmp_path: Path) -> None:
    chat = ScriptedChannel(
        plan=Plan(batch=10), unwanted=lambda m: Refused("no such field") if m.alert.key == "bad" else None
    )
    with delivering(tmp_path / "outbox", chat) as delivery:
        for key in ("a", "bad", "c"):
            delivery.put(firing(key), T0)
        delivery.deliver_all(T0)
        assert [key for key, _ in chat.told] == ["a", "c"]
        assert delivery.health()[0].refused == 1
        chat.unwanted = None
        assert delivery.deliver_all(T0 + HOUR) is None
    with Outbox(tmp_path / "outbox") as outbox:
        assert outbox.queue.again("chat") == 1
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.deliver_all(T0 + HOUR)
    assert [key for key, _ in chat.told] == ["a", "c", "bad"]


def test_a_fault_of_a_channel_stops_no_other_and_shows_no_secret(tmp_path: Path) -> None:
    broken = ScriptedChannel("broken", faults=[ValueError("http://hooks/SECRET")] * 9)
    good = ScriptedChannel("good")
    with delivering(tmp_path / "outbox", broken, good) as delivery:
        delivery.put(firing(), T0)
        delivery.deliver_all(T0)
        assert len(good.got) == 1
        error = delivery.health()[0].error
    assert error is not None
    assert "ValueError" in error
    assert "SECRET" not in error


def test_a_rate_spreads_messages_and_loses_none(tmp_path: Path) -> None:
    chat = ScriptedChannel(plan=Plan(rate=Rate(5, MINUTE)))
    with delivering(tmp_path / "outbox", chat) as delivery:
        for number in range(20):
            delivery.put(firing(f"job-{number:02}"), T0)
        now: int | None = T0
        sent: list[tuple[int, int]] = []
        while now is not None:
            due = delivery.deliver_all(now)
            sent.append((now, len(chat.got)))
            assert due is None or due > now
            now = due
    assert [key for key, _ in chat.told] == [f"job-{number:02}" for number in range(20)]
    assert sent[0] == (T0, 5)
    assert sent[-1][0] - T0 == pytest.approx(3 * MINUTE, abs=20)  # 15 more, 12 s each
    for at, number in sent:
        assert number <= 5 + (at - T0) * 5 // MINUTE + 1


def test_a_rate_is_kept_over_a_restart(tmp_path: Path) -> None:
    chat = ScriptedChannel(plan=Plan(rate=Rate(1, MINUTE)))
    for restart in range(3):
        with delivering(tmp_path / "outbox", chat) as delivery:
            delivery.put(firing(f"{restart}"), T0 + restart)
            delivery.deliver_all(T0 + restart)
    assert len(chat.got) == 1


@given(st.lists(st.tuples(st.integers(-100, 1_000), st.booleans()), max_size=50), st.integers(1, 20))
def test_a_bucket_never_gives_more_than_its_rate(steps: list[tuple[int, bool]], count: int) -> None:
    rate = Rate(count, 1_000)
    bucket, now, taken, first = Bucket(float(count), 0), 0, 0, 0
    for forward, take in steps:
        now += abs(forward)
        bucket = bucket.filled(rate, now)
        if take and bucket.tokens >= 1:
            bucket, taken = bucket.taken(), taken + 1
        elif take:
            ready = bucket.ready_at(rate)
            assert bucket.filled(rate, ready).tokens >= 1 - 1e-9
            assert ready > now
    assert taken <= count + (now - first) * count / 1_000 + 1e-6


def test_a_silenced_alert_is_told_when_the_silence_ends_if_it_still_fires(tmp_path: Path) -> None:
    chat, log = ScriptedChannel("chat"), ScriptedChannel("log", Plan(mutes=False))
    quiet = silence('team="ads"', T0 + HOUR)
    with delivering(tmp_path / "outbox", chat, log, silences=[quiet]) as delivery:
        delivery.put(firing("stays"), T0)
        delivery.put(firing("goes"), T0)
        delivery.put(firing("video", team="video"), T0)
        assert delivery.deliver_all(T0) == T0 + HOUR
        assert [key for key, _ in chat.told] == ["video"]
        assert [(m.alert.key, m.silenced) for m in log.got] == [("stays", True), ("goes", True), ("video", False)]
        delivery.put(replace(firing("stays"), body="worse", updated_at=T0 + 1), T0 + 1)
        delivery.put(resolved(firing("goes"), T0 + MINUTE), T0 + MINUTE)
        assert delivery.deliver_all(T0 + MINUTE) == T0 + HOUR
        assert [key for key, _ in chat.told] == ["video"]
        assert delivery.deliver_all(T0 + HOUR) is None
    assert chat.told == [("video", "firing"), ("stays", "firing")]
    assert chat.got[1].alert.body == "worse"
    assert ("goes", "resolved") in log.told


def test_the_end_of_what_was_told_is_told_in_silence_too(tmp_path: Path) -> None:
    chat = ScriptedChannel()
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(firing(), T0)
        delivery.deliver_all(T0)
        delivery.reconfigure([chat], [silence("team=ads", T0 + HOUR)], T0)
        delivery.put(resolved(firing(), T0 + 1), T0 + 1)
        delivery.deliver_all(T0 + 1)
    assert [status for _, status in chat.told] == ["firing", "resolved"]


def test_a_silence_that_is_removed_lets_alerts_through(tmp_path: Path) -> None:
    chat = ScriptedChannel()
    with delivering(tmp_path / "outbox", chat) as delivery, Outbox(tmp_path / "outbox") as other:
        number = other.silence(silence("severity=~warning|info", T0 + HOUR))
        delivery.put(firing(), T0)
        delivery.deliver_all(T0)
        assert chat.got == []
        other.unsilence(number)
        delivery.deliver_all(T0 + 1)
    assert len(chat.got) == 1


def test_a_silence_begins_when_it_says(tmp_path: Path) -> None:
    chat = ScriptedChannel()
    with delivering(tmp_path / "outbox", chat, silences=[silence("team=ads", T0 + HOUR, T0 + MINUTE)]) as delivery:
        delivery.put(firing("a"), T0)
        delivery.deliver_all(T0)
        delivery.put(firing("b"), T0)
        delivery.deliver_all(T0 + MINUTE)
    assert [key for key, _ in chat.told] == ["a"]


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_around_the_sending_loses_nothing_and_a_doubled_message_has_the_same_id(
    tmp_path: Path, after: bool
) -> None:
    chat = ScriptedChannel(faults=[Killed()], after=after)
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(firing(), T0)
        with pytest.raises(Killed):
            delivery.deliver_all(T0)
    with delivering(tmp_path / "outbox", chat) as delivery:
        # It may have arrived: what changed since is a message of its own.
        delivery.put(replace(firing(), severity="critical", updated_at=T0 + 1), T0 + 1)
        delivery.deliver_all(T0 + 1)
    assert len(chat.got) == 2 + after
    assert len({message.id for message in chat.got}) == 2
    assert [message.alert.severity for message in chat.got][-2:] == ["warning", "critical"]


def test_a_disk_that_is_full_is_told_and_what_was_sent_is_sent_again_under_the_same_id(tmp_path: Path) -> None:
    chat = ScriptedChannel()
    with delivering(tmp_path / "outbox", chat) as delivery:
        delivery.put(firing(), T0)
        with Outbox(tmp_path / "outbox") as other:
            other.connection.execute(
                "CREATE TRIGGER full BEFORE UPDATE OF state ON messages BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
            )
            with pytest.raises(OutboxError, match="cannot use the outbox .*disk is full"):
                delivery.deliver_all(T0)
            other.connection.execute("DROP TRIGGER full")
        delivery.deliver_all(T0 + 1)
    assert len(chat.got) == 2
    assert len({message.id for message in chat.got}) == 1


KEYS = ("a", "b", "c")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(KEYS), st.booleans()),
        st.tuples(
            st.just("deliver"), st.sampled_from(("ok", "down", "down after", "kill", "kill after")), st.just(True)
        ),
        st.tuples(st.just("silence"), st.sampled_from(KEYS), st.booleans()),
    ),
    max_size=40,
)


@given(STEPS, st.integers(1, 3))
def test_whatever_fails_every_change_arrives_in_order_and_only_crashes_double(
    steps: Sequence[tuple[str, str, bool]], batch: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder) / "outbox", steps, batch)


def run(path: Path, steps: Sequence[tuple[str, str, bool]], batch: int) -> None:
    log = ScriptedChannel("log", Plan(mutes=False, batch=batch))
    chat = ScriptedChannel("chat", Plan(batch=batch))
    now, doubled = T0, 0
    states: dict[str, bool] = {}
    wanted: dict[str, list[str]] = {key: [] for key in KEYS}
    silences: dict[str, Silence] = {}
    faults: dict[str, Callable[[], BaseException | None]] = {
        "ok": lambda: None,
        "down": lambda: Unavailable("down"),
        "down after": lambda: Unavailable("down"),
        "kill": Killed,
        "kill after": Killed,
    }
    context = delivering(path, chat, log)
    delivery = context.__enter__()
    try:
        for kind, what, on in [*steps, ("end", "ok", True), ("deliver", "ok", True)]:
            now += 10 * MINUTE
            if kind == "put":
                alert = firing(what, now) if on else resolved(firing(what), now)
                delivery.put(alert, now)
                if on != states.get(what, False):
                    wanted[what].append("firing" if on else "resolved")
                    states[what] = on
            elif kind == "silence":
                silences.pop(what, None)
                if on:
                    silences[what] = silence(f"quiet={what}", now + 1_000 * HOUR)
                delivery.reconfigure([chat, log], silences.values(), now)
            elif kind == "deliver":
                fault = faults[what]()
                for channel in (chat, log):
                    channel.faults, channel.after = [fault], what.endswith("after")
                before = [len(chat.got), len(log.got)]
                try:
                    delivery.deliver_all(now)
                except Killed:
                    context.__exit__(None, None, None)
                    context = delivering(path, chat, log, silences=tuple(silences.values()))
                    delivery = context.__enter__()
                if what.endswith("after"):
                    doubled += len(chat.got) - before[0] + len(log.got) - before[1]
    finally:
        context.__exit__(None, None, None)
    for channel in (chat, log):
        once = list({message.id: message for message in channel.got}.values())
        assert len(channel.got) - len(once) <= doubled
        for key in KEYS:
            told = [message.alert.status for message in once if message.alert.key == key]
            assert told == wanted[key]
