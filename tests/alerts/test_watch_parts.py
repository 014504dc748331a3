"""The parts of watching by themselves: streams of attempts, thresholds, what explains a shift, words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ettwatch_app.owners import find_owners
from ettwatch_monitor.alerts.detect import FLEET, METRICS, Book, Effect, Incident, Rate, Sample, StreamKey, Times
from ettwatch_monitor.alerts.watch import Memory, Threshold, Window, alert_of, make_streams
from ettwatch_monitor.alerts.watch.attempt import AttemptFact
from ettwatch_monitor.alerts.watch.codec import incident_from, incident_to
from ettwatch_monitor.alerts.watch.explain import Part, explain_rate, explain_times
from ettwatch_monitor.alerts.watch.threshold import check_thresholds
from support.regress import DAY, HOUR, NOF, T0, TTS, attempts, failures, starts

OWNERS = find_owners(Path("nowhere"), {})
S = 1_000_000


def an_attempt(start: int, end: int, gpus: int = 8, **more: object) -> AttemptFact:
    usual = AttemptFact("j", 0, "ads", "m", "c", gpus, start, end, False, "succeeded", "", None, None, None, {})
    return replace(usual, **more)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5000, 90_000), st.integers(0, 40_000), st.integers(1, 16)), max_size=12),
    st.lists(st.tuples(st.integers(0, 80_000), st.integers(1, 20_000)), max_size=3),
)
def test_gpu_hours_are_those_held_outside_of_maintenance(
    spans: list[tuple[int, int, int]], planned: list[tuple[int, int]]
) -> None:
    """Against a count second by second."""
    now = T0 + 86_400 * S
    told = [
        an_attempt(T0 + start * S, T0 + (start + length) * S, gpus, job=f"j{n}")
        for n, (start, length, gpus) in enumerate(spans)
    ]
    windows = [Window(T0 + start * S, T0 + (start + length) * S) for start, length in planned]
    fleet = make_streams(told, OWNERS, windows, T0, now)
    held = np.zeros(86_400)
    for start, length, gpus in spans:
        held[max(start, 0) : max(min(start + length, 86_400), 0)] += gpus
    for start, length in planned:
        held[start : min(start + length, 86_400)] = 0
    stream = fleet.streams.get(NOF)
    if stream is None:
        assert not held.any()
        return
    assert isinstance(stream, Rate)
    assert stream.exposure.hours == pytest.approx(held.reshape(24, 3600).sum(axis=1) / 3600, abs=1e-6)


def test_a_job_without_a_team_is_the_fleets_and_no_teams() -> None:
    keys = make_streams(attempts(1, days=3, team=""), OWNERS, [], T0, T0 + 9 * DAY).streams
    assert StreamKey("tts", FLEET) in keys
    assert not [key for key in keys if "team" in key.labels]


def test_shares_are_of_whole_attempts_and_open_ones_wait() -> None:
    told = attempts(1, days=3)
    told[-1] = replace(told[-1], open=True)
    streams = make_streams(told, OWNERS, [], T0, T0 + 9 * DAY).streams
    stream = streams[StreamKey("ett", TTS.scope)]
    assert isinstance(stream, Times)
    assert len(stream.samples) == len(told) - 1
    first = next(one for one in stream.samples if one.id == told[0].id)
    assert first.value == pytest.approx(3600 / sum(told[0].stages.values()))


def test_scopes_are_those_that_are_asked_for() -> None:
    streams = make_streams(attempts(1, days=3), OWNERS, [], T0, T0 + 9 * DAY, ("model",)).streams
    assert {tuple(key.labels) for key in streams} == {("model",)}


def test_what_maintenance_touches_is_counted_once_for_each_window() -> None:
    told = [an_attempt(T0, T0 + HOUR, outcome="failed", first_batch=T0 + 60 * S, tts_s=60.0, stages={"shutdown": 1.0})]
    windows = [Window(T0 - HOUR, T0 + 2 * HOUR, "a"), Window(T0 + 30 * DAY, T0 + 31 * DAY, "b")]
    fleet = make_streams(told, OWNERS, windows, T0, T0 + DAY)
    one, other = fleet.excluded
    assert (one.starts, one.attempts, one.failures, one.gpu_hours) == (1, 1, 1, 8.0)
    assert (other.starts, other.attempts, other.failures, other.gpu_hours) == (0, 0, 0, 0.0)
    assert StreamKey("tts", FLEET) not in fleet.streams


RULE = Threshold("slow", "tts", "median", DAY, limit=500.0, back=400.0, hold=3 * HOUR, least=3)


def sampled(*values: float, at: int = T0) -> dict[StreamKey, Times]:
    return {TTS: Times([Sample(at - n * HOUR, f"s{n}", f"s{n}", value) for n, value in enumerate(values)])}


def test_a_threshold_fires_after_its_delay_and_comes_back_below() -> None:
    high = {TTS: Times([Sample(T0 + n * HOUR // 4, f"s{n}", f"s{n}", 600.0) for n in range(8)])}
    assert not check_thresholds([RULE], T0 + 2 * HOUR, high, Book())[1]
    book, opened, _ = check_thresholds([RULE], T0 + 5 * HOUR, high, Book())
    assert [str(one.key) for one in opened] == ["tts|team=ads,rule=slow"]
    assert "above 500 s" in alert_of(opened[0], T0).title
    assert check_thresholds([RULE], T0 + 6 * HOUR, high, book)[1:] == ([], [])
    between = {TTS: Times([Sample(T0 + DAY, f"t{n}", f"t{n}", 450.0) for n in range(9)])}
    assert check_thresholds([RULE], T0 + DAY + HOUR, between, book)[2] == []
    low = {TTS: Times([Sample(T0 + DAY, f"t{n}", f"t{n}", 300.0) for n in range(9)])}
    assert [one.ending for one in check_thresholds([RULE], T0 + DAY + HOUR, low, book)[2]] == ["recovered"]


def test_a_threshold_needs_its_samples_and_ends_with_its_rule() -> None:
    rule = replace(RULE, hold=0)
    assert not check_thresholds([rule], T0, sampled(900, 900), Book())[1]
    book, opened, _ = check_thresholds([rule], T0, sampled(900, 900, 900), Book())
    assert opened
    assert [one.ending for one in check_thresholds([], T0, sampled(900, 900, 900), book)[2]] == ["off"]
    assert [one.ending for one in check_thresholds([rule], T0, {}, book)[2]] == ["quiet"]


def test_a_threshold_on_failures_is_per_thousand_gpu_hours() -> None:
    stream = failures(1)  # three a day in 64 x 24 GPU-hours: about two per 1000
    for limit, fires in ((1.0, True), (4.0, False)):
        rule = Threshold("failing", "nof", "rate", 28 * DAY, limit)
        assert bool(check_thresholds([rule], T0 + 84 * DAY, {NOF: stream}, Book())[1]) is fires


def hosted(factor: float, host: str | None = None, miss: float = 0.1) -> list[Sample]:
    rng = np.random.default_rng(4)
    made = []
    for n, one in enumerate(starts(3, days=20)):
        name, hit = f"h{n % 5}", bool(rng.random() >= miss)
        load = 100.0 * (factor if host in (None, name) else 1.0)
        compiled = 30.0 if hit else 300.0
        stages = {"hardware_setup": 50.0, "trainer_init.checkpoint_load": load, "pt2_compilation": compiled}
        made.append(replace(one, model="m", value=sum(stages.values()), stages=stages, host=name, cache_hit=hit))
    return made


def test_the_stage_that_got_slower_explains_all_of_it() -> None:
    parts = explain_times(METRICS["tts"], hosted(1), hosted(3))
    assert (parts[0].kind, parts[0].name) == ("stage", "trainer_init.checkpoint_load")
    assert parts[0].share == pytest.approx(1.0, abs=0.01)
    assert not [part for part in parts if part.kind == "host"]


def test_the_host_that_got_slower_is_named() -> None:
    parts = explain_times(METRICS["tts"], hosted(1), hosted(4, "h3"))
    assert [part.name for part in parts if part.kind == "host"] == ["h3"]


def test_misses_of_the_cache_are_named() -> None:
    parts = explain_times(METRICS["tts"], hosted(1), hosted(1, miss=0.6))
    cache = next(part for part in parts if part.kind == "cache")
    assert cache.share > 0.8
    assert cache.before is not None
    assert cache.after is not None
    assert cache.before < 0.2 < cache.after


def test_nothing_is_made_up_where_nothing_got_worse() -> None:
    assert explain_times(METRICS["tts"], hosted(2), hosted(1)) == []
    assert explain_times(METRICS["tts"], [], hosted(1)) == []
    told = list(failures(1).failures)
    assert explain_rate(told, told, 1.0, 1.0) == []
    assert explain_rate([], [], 0.0, 0.0) == []


def test_the_cause_of_more_failures_is_named() -> None:
    before = list(failures(1, days=40).failures)
    more = [replace(one, cause="storage", id=f"x{n}") for n, one in enumerate(before)]
    parts = explain_rate(before, [*before, *more], 1000.0, 1000.0)
    assert (parts[0].kind, parts[0].name) == ("cause", "storage")
    assert parts[0].share == pytest.approx(1.0)


EFFECT = Effect(300, 25, 280, 24, (100, 200, 400), (150, 300, 500), 1.5, 1.3, 1.8, 0.0, 1.3, 0.9, 1e-5)


def test_an_alert_says_what_moved_since_when_and_why() -> None:
    one = Incident(TTS, "regression", T0, T0 - HOUR, T0 + HOUR, T0 + DAY, 1e-6, 1.0, EFFECT)
    part = Part("stage", "trainer_init.checkpoint_load", 0.9, 60.0, 150.0, 25)
    alert = alert_of(one, T0 + DAY, [part], "#ads")
    assert alert.title == "time to start (TTS) of team ads: +50 %, to 300 s"
    for words in ("200 s", "300 s", "x1.50", "1.30 to 1.80", "2026-01-05 00:00 UTC", "checkpoint_load: 90 %", "#ads"):
        assert words in alert.body
    assert alert.severity == "critical"
    assert alert.facts["explained_1"] == "stage trainer_init.checkpoint_load"
    over = alert_of(one.end(T0 + 2 * DAY, "recovered", T0 + DAY), T0 + 2 * DAY)
    assert (over.status, over.ends_at) == ("resolved", T0 + 2 * DAY)
    assert "the usual level is back" in over.body


def test_an_episode_survives_the_file(tmp_path: Path) -> None:
    one = Incident(TTS, "fleet", T0, T0, T0, T0, 1e-6, 1.0, EFFECT, also=(NOF,)).end(T0 + 5, "recovered", T0 + 3)
    assert incident_from(incident_to(one)) == one
    with Memory(tmp_path / "m.sqlite") as memory:
        memory.save(Book((one,)), {(str(one.key), one.found): (Part("host", "h", 0.5, None, 1.0, 3),)}, (), T0)
    with Memory(tmp_path / "m.sqlite") as memory:
        book, parts = memory.load()
    assert book.incidents == (one,)
    assert parts[str(one.key), one.found][0].name == "h"
    assert book.holes(NOF) == book.holes(TTS) != ()
